-- What the service's sessions start with. By role, because a pooler takes no settings from a connection: the server's
-- own connections get these as they are made. The role may change them itself; the proof compares them.
ALTER ROLE paypilot_service SET search_path = '';
ALTER ROLE paypilot_service SET timezone = 'UTC';
ALTER ROLE paypilot_service SET synchronous_commit = on;
ALTER ROLE paypilot_service SET default_transaction_isolation = 'read committed';
