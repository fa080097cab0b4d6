resource "aws_apigatewayv2_api" "http" {
  name          = var.name
  description   = "PayPilot decisions"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "decision" {
  api_id                 = aws_apigatewayv2_api.http.id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.decision.invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = 29000
}

# One catch-all route, so that every answer, 404 and 405 included, is the handler's own. The handler asks for the
# token: an authorizer here would answer 401 in another shape than the local host does.
resource "aws_apigatewayv2_route" "everything" {
  api_id    = aws_apigatewayv2_api.http.id
  route_key = "$default"
  target    = "integrations/${aws_apigatewayv2_integration.decision.id}"
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.http.id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    throttling_rate_limit    = var.throttle.rate
    throttling_burst_limit   = var.throttle.burst
    detailed_metrics_enabled = false
  }

  # No header and no body: the log can't hold a token or a customer's data. The path holds the invoice's id.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.access.arn
    format = jsonencode({
      request_id = "$context.requestId"
      at         = "$context.requestTimeEpoch"
      source_ip  = "$context.identity.sourceIp"
      method     = "$context.httpMethod"
      path       = "$context.path"
      status     = "$context.status"
      bytes      = "$context.responseLength"
      total_ms   = "$context.responseLatency"
      lambda_ms  = "$context.integrationLatency"
      error      = "$context.integrationErrorMessage"
    })
  }
}

# AWS grants log delivery below /aws/vendedlogs/ in one entry. Any other name is one more entry in the account's policy
# for log delivery, which holds 5,120 characters and keeps the entry of a group that is gone.
resource "aws_cloudwatch_log_group" "access" {
  name              = "/aws/vendedlogs/${var.name}/access"
  retention_in_days = 7
}

resource "aws_lambda_permission" "api" {
  statement_id  = "http-api"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.decision.function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.http.execution_arn}/*/$default"
}
