"""An OpenID provider made with Authlib (Debian's packages python3-authlib and python3-flask). Everybody who comes is Ana, who says yes.

Reads its set-up as JSON from the first argument, and prints its issuer once it listens.
"""
import json
import os
import sys
import time

os.environ['AUTHLIB_INSECURE_TRANSPORT'] = '1'  # http, on the loopback

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from flask import Flask, jsonify, request
from werkzeug.serving import make_server

setup = json.loads(sys.argv[1])
app = Flask(__name__)
codes, tokens = {}, {}
server = make_server('127.0.0.1', 0, app, threaded=True)
issuer = 'http://127.0.0.1:%d' % server.port
person = UserInfo(sub='ana-7', name='Ana', email='ana@example.com', email_verified=True)


class Client(ClientMixin):
    def get_client_id(self):
        return setup['clientId']

    def get_default_redirect_uri(self):
        return setup['redirectUri']

    def get_allowed_scope(self, scope):
        return scope

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == setup['redirectUri']

    def check_client_secret(self, client_secret):
        return client_secret == setup['clientSecret']

    def check_endpoint_auth_method(self, method, endpoint):
        return method == setup['method']

    def check_response_type(self, response_type):
        return response_type == 'code'

    def check_grant_type(self, grant_type):
        return grant_type == 'authorization_code'


class Code(AuthorizationCodeMixin):
    def __init__(self, query):
        self.query = query
        self.auth_time = int(time.time())
        self.code_challenge = query['code_challenge']
        self.code_challenge_method = query['code_challenge_method']

    def get_redirect_uri(self):
        return self.query['redirect_uri']

    def get_scope(self):
        return self.query['scope']

    def get_nonce(self):
        return self.query['nonce']

    def get_auth_time(self):
        return self.auth_time


class Token(TokenMixin):
    def __init__(self, token):
        self.token = token

    def check_client(self, client):
        return True

    def get_scope(self):
        return self.token['scope']

    def is_expired(self):
        return False

    def is_revoked(self):
        return False


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'none']

    def save_authorization_code(self, code, request):
        codes[code] = Code(dict(request.data))

    def query_authorization_code(self, code, client):
        return codes.get(code)

    def delete_authorization_code(self, authorization_code):
        for code in [code for code, known in codes.items() if known is authorization_code]:
            del codes[code]

    def authenticate_user(self, authorization_code):
        return person


class OpenID(OpenIDCode):
    def exists_nonce(self, nonce, request):
        return False

    def get_jwt_config(self, grant):
        return {'key': setup['key'], 'alg': setup['alg'], 'iss': issuer, 'exp': 600}

    def generate_user_info(self, user, scope):
        return UserInfo(sub=user['sub']) if setup['isAddressInUserinfo'] else user


class Validator(BearerTokenValidator):
    def authenticate_token(self, token_string):
        return tokens.get(token_string)


def save_token(token, request):
    tokens[token['access_token']] = Token(token)


authorization = AuthorizationServer(app, query_client=lambda client_id: Client(), save_token=save_token)
authorization.register_grant(CodeGrant, [OpenID(require_nonce=True), CodeChallenge(required=True)])
protector = ResourceProtector()
protector.register_token_validator(Validator())


@app.route('/authorize')
def authorize():
    return authorization.create_authorization_response(grant_user=person)


@app.route('/token', methods=['POST'])
def token():
    return authorization.create_token_response()


@app.route('/userinfo')
@protector('openid')
def userinfo():
    return jsonify(person if setup['isAddressInUserinfo'] else {'sub': person['sub']})


@app.route('/jwks')
def jwks():
    return jsonify({'keys': [setup['publicKey']]})


@app.route('/.well-known/openid-configuration')
def configuration():
    return jsonify(
        issuer=issuer,
        authorization_endpoint=issuer + '/authorize',
        token_endpoint=issuer + '/token',
        userinfo_endpoint=issuer + '/userinfo',
        jwks_uri=issuer + '/jwks',
        token_endpoint_auth_methods_supported=[setup['method']],
        id_token_signing_alg_values_supported=[setup['alg']],
        response_types_supported=['code'],
        subject_types_supported=['public'],
        code_challenge_methods_supported=['S256'],
    )


print(issuer, flush=True)
server.serve_forever()
