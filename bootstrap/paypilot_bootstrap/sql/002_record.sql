-- The record. `seq` is the order in which rows were taken, and like every time it is the database's own.
CREATE SCHEMA paypilot AUTHORIZATION paypilot_owner;
SET LOCAL ROLE paypilot_owner;

CREATE TABLE paypilot.decision_audit (
    decision_id uuid PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    client_id text NOT NULL CHECK (client_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    invoice_id text NOT NULL CHECK (length(invoice_id) BETWEEN 1 AND 255),
    failure_code text NOT NULL CHECK (length(failure_code) BETWEEN 1 AND 100),
    attempt integer NOT NULL CHECK (attempt BETWEEN 1 AND 1000),
    prior_failures integer NOT NULL CHECK (prior_failures BETWEEN 0 AND 1000),
    idempotency_key text CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    rule text NOT NULL,
    matched boolean NOT NULL,
    action text NOT NULL,
    tone text NOT NULL,
    retry_in_days integer CHECK (retry_in_days >= 1),
    churn_risk text NOT NULL CHECK (churn_risk IN ('low', 'medium', 'high')),
    escalated boolean NOT NULL,
    rules_version text NOT NULL CHECK (rules_version ~ '^sha256:[0-9a-f]{64}$'),
    rail jsonb,
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (client_id, idempotency_key)
);
CREATE INDEX decisions_of_an_invoice ON paypilot.decision_audit (client_id, invoice_id, seq DESC);
CREATE INDEX decisions_that_fell_through ON paypilot.decision_audit (client_id, decided_at DESC, decision_id DESC)
    WHERE NOT matched;

CREATE TABLE paypilot.decision_outcomes (
    outcome_id uuid PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    client_id text NOT NULL CHECK (client_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    invoice_id text NOT NULL CHECK (length(invoice_id) BETWEEN 1 AND 255),
    outcome text NOT NULL CHECK (outcome IN ('paid', 'not_paid')),
    report_key text NOT NULL CHECK (length(report_key) BETWEEN 1 AND 255),
    reported_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (client_id, report_key)
);
CREATE INDEX outcomes_of_an_invoice ON paypilot.decision_outcomes (client_id, invoice_id, seq DESC);

CREATE TABLE paypilot.decision_refusals (
    refusal_id uuid PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    client_id text NOT NULL CHECK (client_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    route text NOT NULL,
    gate text NOT NULL,
    reason text NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX refusals_of_a_client ON paypilot.decision_refusals (client_id, refused_at DESC, refusal_id DESC);

-- One client's rows at a time, for the owner as well. No client set: current_setting gives null or '', and no row has that.
DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['decision_audit', 'decision_outcomes', 'decision_refusals'] LOOP
        EXECUTE format('ALTER TABLE paypilot.%I ENABLE ROW LEVEL SECURITY', table_name);
        EXECUTE format('ALTER TABLE paypilot.%I FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format(
            'CREATE POLICY one_client ON paypilot.%I USING (client_id = current_setting(''paypilot.client_id'', true))',
            table_name);
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA paypilot TO paypilot_service;
GRANT SELECT ON paypilot.decision_audit, paypilot.decision_outcomes, paypilot.decision_refusals TO paypilot_service;
-- By column: not seq, and no time.
GRANT INSERT (decision_id, client_id, invoice_id, failure_code, attempt, prior_failures, idempotency_key, rule, matched,
              action, tone, retry_in_days, churn_risk, escalated, rules_version, rail)
    ON paypilot.decision_audit TO paypilot_service;
GRANT INSERT (outcome_id, client_id, invoice_id, outcome, report_key) ON paypilot.decision_outcomes TO paypilot_service;
GRANT INSERT (refusal_id, client_id, route, gate, reason) ON paypilot.decision_refusals TO paypilot_service;
RESET ROLE;
