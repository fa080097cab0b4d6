"""The request that the README shows, for whatever else shows one."""

FAILED_PAYMENT = {"invoice_id": "in_1001", "failure_code": "insufficient_funds"}
