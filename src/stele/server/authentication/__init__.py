"""Authentication of requests.

See docs/how-to/authenticate.md.
"""

from stele.server.authentication.authenticator import AuthenticationMethods, RequestAuthenticator, open_methods
from stele.server.authentication.methods import Method, parse_methods

__all__ = ["AuthenticationMethods", "Method", "RequestAuthenticator", "open_methods", "parse_methods"]
