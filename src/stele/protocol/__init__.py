"""JSON bodies of the dialects that more than one part speaks: the server, the client and the migration."""
