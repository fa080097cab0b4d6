-- Erasing a client: one function, granted on its own, that leaves a row saying that it ran and what it removed by count.
SET LOCAL ROLE paypilot_owner;
CREATE TABLE paypilot.erasures (
    erasure_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    client_id text NOT NULL,
    decisions bigint NOT NULL,
    outcomes bigint NOT NULL,
    refusals bigint NOT NULL,
    erased_by text NOT NULL DEFAULT session_user,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON paypilot.erasures
    FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change();
ALTER TABLE paypilot.erasures ENABLE ALWAYS TRIGGER append_only;

GRANT USAGE ON SCHEMA paypilot TO paypilot_erasure, paypilot_eraser;
GRANT SELECT, DELETE ON paypilot.decision_audit, paypilot.decision_outcomes, paypilot.decision_refusals
    TO paypilot_erasure;
GRANT SELECT, DELETE ON paypilot.invoice_states, paypilot.rule_counts TO paypilot_erasure;
GRANT INSERT (client_id, decisions, outcomes, refusals) ON paypilot.erasures TO paypilot_erasure;
GRANT SELECT ON paypilot.erasures TO paypilot_eraser;
-- To own its function, and only while that is made, the role may create in the schema.
GRANT CREATE ON SCHEMA paypilot TO paypilot_erasure;
RESET ROLE;

GRANT paypilot_erasure TO CURRENT_USER WITH INHERIT FALSE, SET TRUE;
SET LOCAL ROLE paypilot_erasure;
CREATE FUNCTION paypilot.erase_client(client text)
    RETURNS TABLE (decisions bigint, outcomes bigint, refusals bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    -- Under another isolation the snapshot is older than the lock, and rows that came in between would stay.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a client is erased under READ COMMITTED' USING ERRCODE = 'feature_not_supported';
    END IF;
    -- Decisions and reports of this client that are under way come first, and are erased; new ones wait.
    PERFORM pg_advisory_xact_lock(hashtextextended(client, 0));
    PERFORM set_config('paypilot.client_id', client, true);
    DELETE FROM paypilot.rule_counts WHERE client_id = client;
    DELETE FROM paypilot.invoice_states WHERE client_id = client;
    DELETE FROM paypilot.decision_outcomes WHERE client_id = client;
    GET DIAGNOSTICS outcomes = ROW_COUNT;
    DELETE FROM paypilot.decision_refusals WHERE client_id = client;
    GET DIAGNOSTICS refusals = ROW_COUNT;
    DELETE FROM paypilot.decision_audit WHERE client_id = client;
    GET DIAGNOSTICS decisions = ROW_COUNT;
    INSERT INTO paypilot.erasures (client_id, decisions, outcomes, refusals)
    VALUES (client, decisions, outcomes, refusals);
    PERFORM set_config('paypilot.client_id', '', true);
    RETURN NEXT;
END
$$;
REVOKE ALL ON FUNCTION paypilot.erase_client(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paypilot.erase_client(text) TO paypilot_eraser;
RESET ROLE;

SET LOCAL ROLE paypilot_owner;
REVOKE CREATE ON SCHEMA paypilot FROM paypilot_erasure;
RESET ROLE;
REVOKE paypilot_erasure FROM CURRENT_USER;
