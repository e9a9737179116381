"""
A small Django app with django-allauth, whose accounts the moving guide moves. Run, it lets people sign up and in, and prints its tables:

    DATABASE=old_app python app.py > rows.sql

rows.sql was made by Django 5.2.17, django-allauth 65.16.1 (commit 20f4bde) and psycopg2 2.9.13 on Python 3.11.7 and PostgreSQL 15.20.
"""
import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import django
import jwt
from django.conf import settings

password, older = "Ärmel & naïve Straße 9", "an older password 7"
profiles = {
    "ada": {"sub": "google-1", "email": "ada@gmail.com", "email_verified": True},
    "grace": {"sub": "google-2", "email": "grace@example.com", "email_verified": False},
}


class Google(BaseHTTPRequestHandler):
    """Google's token endpoint: the code is the name of a person."""

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        claims = {"iss": "https://accounts.google.com", "aud": "client", "exp": 4102444800, **profiles[form["code"][0]]}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": "at", "id_token": jwt.encode(claims, "k" * 32)}).encode())

    def log_message(self, *_):
        pass


google = HTTPServer(("127.0.0.1", 0), Google)
threading.Thread(target=google.serve_forever, daemon=True).start()

database = os.environ["DATABASE"]
settings.configure(
    SECRET_KEY="django-insecure-of-the-old-app",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["testserver"],
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": database, "USER": "postgres", "HOST": "127.0.0.1"}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "allauth",
        "allauth.account",
        "allauth.socialaccount",
        "allauth.socialaccount.providers.google",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": ["django.template.context_processors.request", "django.contrib.messages.context_processors.messages"]},
        }
    ],
    AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend", "allauth.account.auth_backends.AuthenticationBackend"],
    EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend",
    ACCOUNT_RATE_LIMITS=False,
    SOCIALACCOUNT_PROVIDERS={
        "google": {
            "APPS": [{"client_id": "client", "secret": "secret"}],
            "ACCESS_TOKEN_URL": f"http://127.0.0.1:{google.server_port}/token",
        }
    },
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402, settings first
from django.core import mail  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import include, path  # noqa: E402


def put_in_cart(request):
    request.session["cart"] = 1
    return HttpResponse()


def who_am_i(request):
    return JsonResponse({"username": request.user.username})


urlpatterns = [path("accounts/", include("allauth.urls")), path("cart/", put_in_cart), path("whoami/", who_am_i)]


def post(client, page, **form):
    response = client.post(f"/accounts/{page}", form)
    assert response.status_code == 302, response.content.decode()
    return response


def sign_up(username, email, secret):
    client = Client()
    post(client, "signup/", username=username, email=email, password1=secret, password2=secret)
    return client


def log_in(username, secret):
    client = Client()
    post(client, "login/", login=username, password=secret)
    return client


def by_google(client, person, process="login"):
    state = parse_qs(urlsplit(post(client, f"google/login/?process={process}")["location"]).query)["state"][0]
    assert client.get(f"/accounts/google/login/callback/?code={person}&state={state}").status_code == 302


def main():
    call_command("migrate", verbosity=0)
    of_older_password = sign_up("ada", "Ada@Example.com", older)
    post(of_older_password, re.search(r"/accounts/(confirm-email/[^/]+/)", mail.outbox[-1].body)[1])
    living = log_in("ada", older)
    by_google(living, "ada", "connect")
    post(living, "password/change/", oldpassword=older, password1=password, password2=password)
    User.objects.filter(username="ada").update(first_name="Ada", last_name="Lovelace", is_superuser=True)
    expired = log_in("ada", password)
    by_google(Client(), "grace")
    sign_up("closed", "", password)
    User.objects.filter(username="closed").update(is_active=False)
    sign_up("nobody", "", password)
    User.objects.create_user("linus", "Linus@Example.com", password)  # Django itself leaves an address as it is typed
    signed_out = Client()
    signed_out.get("/cart/")
    assert living.get("/whoami/").json() == {"username": "ada"}

    clients = {"living": living, "expired": expired, "signedOut": signed_out, "olderPassword": of_older_password}
    for name, client in clients.items():
        print(f"-- {name}: {client.cookies['sessionid'].value}")
    tables = ["auth_user", "account_emailaddress", "socialaccount_socialaccount", "django_session"]
    dump = ["pg_dump", "-h", "127.0.0.1", "-U", "postgres", "--inserts", "--no-owner", *[f"--table={name}" for name in tables], database]
    lines = subprocess.run(dump, check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        # What psql alone reads, and what is about a whole database.
        if line and not re.match(r"--|\\|SET |SELECT pg_catalog.set_config", line):
            print(line.replace("public.", ""))


main()
