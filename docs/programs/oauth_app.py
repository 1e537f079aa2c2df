"""A web app that connects to an account with OAuth 2.0: a confidential app (docs/oauth.md)."""

import base64, hashlib, html, http.server, json, os, secrets, threading, time, urllib.error, urllib.parse, urllib.request

SVC = os.environ["SVC_URL"]
CLIENT_ID, CLIENT_SECRET = os.environ["SVC_CLIENT_ID"], os.environ["SVC_CLIENT_SECRET"]
PORT = int(os.environ.get("PORT", "9000"))
REDIRECT_URI = f"http://127.0.0.1:{PORT}/callback"
TOKENS = "tokens.json"
lock = threading.Lock()
verifiers = {}  # The verifier of each state that waits for its browser.


def post(path, form):
    """Sends a form with the credentials of the app, and returns the body."""
    credentials = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}"}
    request = urllib.request.Request(SVC + path, urllib.parse.urlencode(form).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read()


def save(tokens):
    tokens["expires_at"] = time.time() + tokens["expires_in"]
    with open(os.open(TOKENS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(tokens, file)
    return tokens


def load():
    try:
        with open(TOKENS) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def refresh(tokens):
    """Gets another access token. Returns None if the account has disconnected the app."""
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    try:
        return save(json.loads(post("/oauth/token", form)))
    except urllib.error.HTTPError as error:
        if error.code != 400 or json.load(error)["error"] != "invalid_grant":
            raise
        os.remove(TOKENS)
        return None


def get(path):
    """Calls the API. Returns None if no account is connected."""
    with lock:
        tokens = load()
        if tokens and tokens["expires_at"] < time.time() + 60:
            tokens = refresh(tokens)
    for is_last in (False, True):
        if tokens is None:
            return None
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        try:
            with urllib.request.urlopen(urllib.request.Request(SVC + path, headers=headers), timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code != 401 or is_last:
                raise
        with lock:
            tokens = refresh(tokens)


class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        page = {"/": self.home, "/connect": self.connect, "/callback": self.callback}.get(url.path)
        page(query) if page else self.send_error(404)

    def do_POST(self):
        tokens = load()
        if self.path != "/disconnect" or self.headers["Origin"] != f"http://{self.headers['Host']}" or tokens is None:
            return self.send_error(400)
        post("/oauth/revoke", {"token": tokens["refresh_token"]})
        os.remove(TOKENS)
        self.go("/")

    def home(self, query):
        contacts = get("/api/v1/contacts")
        if contacts is None:
            return self.show('<a href="/connect">Connect your account</a>')
        names = [html.escape(contact["email"] or contact["first_name"] or "") for contact in contacts["data"]]
        self.show(f"Contacts: {', '.join(names)}<form method=post action=/disconnect><button>Disconnect</button></form>")

    def connect(self, query):
        state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        verifiers[state] = verifier
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": REDIRECT_URI,
            "scope": "read",
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        # The cookie tells whether it is the same browser that returns.
        self.go(f"{SVC}/oauth/authorize?{urllib.parse.urlencode(parameters)}", f"state={state}; HttpOnly; SameSite=Lax")

    def callback(self, query):
        state = query.get("state", "")
        verifier = verifiers.pop(state, None)
        if verifier is None or f"state={state}" not in self.headers.get("Cookie", "") or query.get("iss") != SVC:
            return self.send_error(400, "This is not the response to a request of this browser")
        if "code" in query:
            form = {"grant_type": "authorization_code", "code": query["code"], "code_verifier": verifier}
            save(json.loads(post("/oauth/token", {**form, "redirect_uri": REDIRECT_URI})))
        self.go("/")

    def show(self, page):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.encode())

    def go(self, url, cookie=None):
        self.send_response(303)
        self.send_header("Location", url)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), App).serve_forever()
