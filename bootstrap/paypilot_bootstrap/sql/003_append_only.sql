-- Append-only, to the owner as well. Statement triggers: they fire for TRUNCATE, and also where a statement would find no
-- row. ALWAYS: also in a session that plays a replica. Erasure is the one exception, by the role that only its function is.
SET LOCAL ROLE paypilot_owner;

CREATE FUNCTION paypilot.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_user = 'paypilot_erasure' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'paypilot.% is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
REVOKE ALL ON FUNCTION paypilot.refuse_change() FROM PUBLIC;

DO $$
DECLARE
    table_name text;
BEGIN
    FOREACH table_name IN ARRAY ARRAY['decision_audit', 'decision_outcomes', 'decision_refusals'] LOOP
        EXECUTE format(
            'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON paypilot.%I '
            'FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change()', table_name);
        EXECUTE format('ALTER TABLE paypilot.%I ENABLE ALWAYS TRIGGER append_only', table_name);
    END LOOP;
END
$$;
RESET ROLE;
