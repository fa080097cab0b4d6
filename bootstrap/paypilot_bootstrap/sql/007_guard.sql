-- A new table of the record takes one CREATE TABLE and, by the owner, one SELECT paypilot.guard('its name').
SET LOCAL ROLE paypilot_owner;

-- A row that is under way when its client is erased comes first, and is erased; a new one waits. Decisions and reports
-- take the same lock where they are counted. Before the row: else it could hold one that the erasure waits for.
CREATE FUNCTION paypilot.wait_for_erasure() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(NEW.client_id, 0));
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION paypilot.wait_for_erasure() FROM PUBLIC;
CREATE TRIGGER wait_for_erasure BEFORE INSERT ON paypilot.decision_refusals
    FOR EACH ROW EXECUTE FUNCTION paypilot.wait_for_erasure();
ALTER TABLE paypilot.decision_refusals ENABLE ALWAYS TRIGGER wait_for_erasure;

-- Append-only, one client's rows at a time, and erased with its client: what 002, 003 and 005 wrote out for each table.
-- The service supplies the columns that have no default: not seq, and no time.
CREATE FUNCTION paypilot.guard(table_name text) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    supplied text;
BEGIN
    SELECT string_agg(format('%I', attname), ', ') INTO supplied FROM pg_attribute
    WHERE attrelid = format('paypilot.%I', table_name)::regclass
      AND attnum > 0 AND NOT attisdropped AND NOT atthasdef AND attidentity = '';
    EXECUTE format('ALTER TABLE paypilot.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', table_name);
    EXECUTE format(
        'CREATE POLICY one_client ON paypilot.%I USING (client_id = current_setting(''paypilot.client_id'', true))',
        table_name);
    EXECUTE format(
        'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON paypilot.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change()', table_name);
    EXECUTE format('ALTER TABLE paypilot.%I ENABLE ALWAYS TRIGGER append_only', table_name);
    EXECUTE format(
        'CREATE TRIGGER wait_for_erasure BEFORE INSERT ON paypilot.%I '
        'FOR EACH ROW EXECUTE FUNCTION paypilot.wait_for_erasure()', table_name);
    EXECUTE format('ALTER TABLE paypilot.%I ENABLE ALWAYS TRIGGER wait_for_erasure', table_name);
    EXECUTE format('GRANT SELECT, INSERT (%s) ON paypilot.%I TO paypilot_service', supplied, table_name);
    EXECUTE format('GRANT SELECT, DELETE ON paypilot.%I TO paypilot_erasure', table_name);
END
$$;
REVOKE ALL ON FUNCTION paypilot.guard(text) FROM PUBLIC;

-- An erasure leaves a row for each table, also where it had no rows of the client. The rows of one share its id. What
-- was erased before had three counts, so it becomes three rows.
ALTER TABLE paypilot.erasures DROP CONSTRAINT erasures_pkey;
ALTER TABLE paypilot.erasures RENAME TO erasures_before;
CREATE TABLE paypilot.erasures (
    erasure_id bigint NOT NULL,
    client_id text NOT NULL,
    table_name text NOT NULL,
    row_count bigint NOT NULL,
    erased_by text NOT NULL DEFAULT session_user,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (erasure_id, table_name)
);
INSERT INTO paypilot.erasures
SELECT erasure_id, client_id, table_name, row_count, erased_by, erased_at
FROM paypilot.erasures_before,
     LATERAL (VALUES ('decision_audit', decisions), ('decision_outcomes', outcomes), ('decision_refusals', refusals))
         AS counted (table_name, row_count)
ORDER BY erasure_id, table_name;
DROP TABLE paypilot.erasures_before;
CREATE SEQUENCE paypilot.erasure_ids OWNED BY paypilot.erasures.erasure_id;
SELECT setval('paypilot.erasure_ids', (SELECT coalesce(max(erasure_id), 0) + 1 FROM paypilot.erasures), false);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON paypilot.erasures
    FOR EACH STATEMENT EXECUTE FUNCTION paypilot.refuse_change();
ALTER TABLE paypilot.erasures ENABLE ALWAYS TRIGGER append_only;
GRANT INSERT (erasure_id, client_id, table_name, row_count) ON paypilot.erasures TO paypilot_erasure;
GRANT USAGE ON SEQUENCE paypilot.erasure_ids TO paypilot_erasure;
GRANT SELECT ON paypilot.erasures TO paypilot_eraser;
GRANT CREATE ON SCHEMA paypilot TO paypilot_erasure;
RESET ROLE;

GRANT paypilot_erasure TO CURRENT_USER WITH INHERIT FALSE, SET TRUE;
SET LOCAL ROLE paypilot_erasure;
DROP FUNCTION paypilot.erase_client(text);
CREATE FUNCTION paypilot.erase_client(client text) RETURNS TABLE (table_name text, row_count bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    erasure bigint;
BEGIN
    -- Under another isolation the snapshot is older than the lock, and rows that came in between would stay.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a client is erased under READ COMMITTED' USING ERRCODE = 'feature_not_supported';
    END IF;
    -- Rows of this client that are under way come first, and are erased; new ones wait.
    PERFORM pg_advisory_xact_lock(hashtextextended(client, 0));
    PERFORM set_config('paypilot.client_id', client, true);
    erasure := nextval('paypilot.erasure_ids');
    -- Every table with a client's rows, the newest first: it may refer to an older one. A table that isn't guarded fails
    -- the whole erasure.
    FOR table_name IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'client_id'
        WHERE c.relnamespace = 'paypilot'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.relname <> 'erasures'
        ORDER BY c.oid DESC
    LOOP
        EXECUTE format('DELETE FROM paypilot.%I WHERE client_id = $1', table_name) USING client;
        GET DIAGNOSTICS row_count = ROW_COUNT;
        INSERT INTO paypilot.erasures (erasure_id, client_id, table_name, row_count)
        VALUES (erasure, client, table_name, row_count);
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('paypilot.client_id', '', true);
END
$$;
REVOKE ALL ON FUNCTION paypilot.erase_client(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paypilot.erase_client(text) TO paypilot_eraser;
RESET ROLE;

SET LOCAL ROLE paypilot_owner;
REVOKE CREATE ON SCHEMA paypilot FROM paypilot_erasure;
RESET ROLE;
REVOKE paypilot_erasure FROM CURRENT_USER;
