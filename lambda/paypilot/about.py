"""What the service says about itself, to anybody."""

from paypilot import __version__
from paypilot.call import Call
from paypilot.http.response import Response, json_response


def health(call: Call) -> Response:
    """The function runs. The database is not touched."""
    return json_response({"status": "ok", "version": __version__, "commit": call.published.commit})


def openapi(call: Call) -> Response:
    return Response(200, call.published.openapi)
