-- What the application adds to a project that has the outbox: a table, and a function that writes a row of it together
-- with its event.
CREATE TABLE IF NOT EXISTS public.quote_requests (
  id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_name text NOT NULL CHECK (project_name <> ''),
  supplier_id  integer
);
ALTER TABLE public.quote_requests ENABLE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON public.quote_requests TO service_role;

CREATE OR REPLACE FUNCTION public.create_quote_request(project_name text)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
  quote_request_id uuid := gen_random_uuid();
BEGIN
  -- The event first, only to show that it goes when the row is refused.
  PERFORM public.outbox_enqueue(
    'quote_request.created',
    jsonb_build_object('quoteRequestId', quote_request_id, 'projectName', project_name)
  );
  INSERT INTO public.quote_requests (id, project_name) VALUES (quote_request_id, project_name);
  RETURN quote_request_id;
END
$$;
REVOKE ALL ON FUNCTION public.create_quote_request(text) FROM public, anon, authenticated;
GRANT EXECUTE ON FUNCTION public.create_quote_request(text) TO service_role;

-- And an event of its own when a supplier is assigned, whoever writes it.
DROP TRIGGER IF EXISTS tell_of_assigned_supplier ON public.quote_requests;
CREATE TRIGGER tell_of_assigned_supplier
AFTER UPDATE OF supplier_id ON public.quote_requests
FOR EACH ROW
WHEN (OLD.supplier_id IS DISTINCT FROM NEW.supplier_id)
EXECUTE FUNCTION public.outbox_enqueue_row('quote_request.assigned', 'quoteRequestId:id', 'supplierId:supplier_id');

NOTIFY pgrst, 'reload schema';
