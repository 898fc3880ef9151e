"""JSON bodies of the dialects that more than one component uses: the server, the client and the migration."""
