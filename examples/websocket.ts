/**
 * A chat over a WebSocket (ws), for pages with cookies. The server checks the upgrade request, and closes the socket when the session ends:
 * with 1008, or with 3000 when the access token has expired. After 3000 the page refreshes its cookies and connects again.
 *
 *   npm install ws @types/ws
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx websocket.ts
 */
import { createServer } from 'node:http'
import { createAuthRouter, createAuthTables, createKnexStore, errors, type VerifiedCredential } from 'doorward'
import express from 'express'
import knex from 'knex'
import { type WebSocket, WebSocketServer } from 'ws'

const page = `<!doctype html><title>Chat</title>
<form id="login"><input name="email" type="email"><input name="password" type="password"><button>Log in</button></form>
<form id="say"><input name="text"><button>Say</button></form><output></output>
<script type="module">
  const post = (path, body) =>
    fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const show = (text) => { document.querySelector('output').textContent = text }
  let socket
  const connect = (isFirst = true) => {
    let wasOpen = false
    socket = new WebSocket(location.origin.replace('http', 'ws') + '/chat')
    socket.onopen = () => { wasOpen = true; show('connected') }
    socket.onmessage = ({ data }) => show(data)
    socket.onclose = async ({ code }) => {
      // A browser does not tell why a handshake was refused. The access token may have expired, so the page refreshes once.
      const mayRefresh = code === 3000 || (!wasOpen && isFirst)
      if (mayRefresh && (await post('/auth/refresh', {})).ok) connect(false)
      else show('signed out')
    }
  }
  document.querySelector('#login').onsubmit = async (event) => {
    event.preventDefault()
    if ((await post('/auth/login', Object.fromEntries(new FormData(event.target)))).ok) connect()
  }
  document.querySelector('#say').onsubmit = (event) => {
    event.preventDefault()
    socket?.send(event.target.text.value)
  }
  connect()
</script>`

const [sessionEnded, tokenExpired] = [1008, 3000]

function accept(sockets: WebSocketServer, socket: WebSocket, { userId, signal, release }: VerifiedCredential) {
  socket.on('close', release) // without it, doorward would watch the session of a closed socket
  socket.on('error', () => socket.terminate())
  signal.addEventListener('abort', () => {
    const isExpired = signal.reason instanceof errors.TokenExpiredError
    socket.close(isExpired ? tokenExpired : sessionEnded, signal.reason.code)
  })
  socket.on('message', (text) => {
    if (signal.aborted) return // ws still reads messages until the client answers the close
    for (const client of sockets.clients) client.send(`${userId}: ${text}`) // ws sends nothing to a socket that is closing
  })
}

export async function start(port = 3000, { filename = 'app.sqlite', accessTokenTtlSeconds = 900 } = {}) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: `http://localhost:${port}`, // only pages of this origin may open a socket by cookie
      tokenDelivery: 'cookie',
      cookieSecure: false, // false only for plain http on localhost
      accessTokenTtlSeconds,
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.get('/', (_request, response) => {
    response.type('html').send(page)
  })
  app.use('/auth', auth)

  const sockets = new WebSocketServer({ noServer: true, maxPayload: 4_096 })
  const server = createServer(app)
  server.on('upgrade', async (request, socket, head) => {
    socket.on('error', () => socket.destroy()) // the client may hang up before the check has ended
    try {
      const person = await auth.guards.verify(request)
      sockets.handleUpgrade(request, socket, head, (opened) => accept(sockets, opened, person))
    } catch (error) {
      const status = error instanceof errors.AppError ? error.status : 500
      // Without `destroy`, the client could keep the refused connection open.
      socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy())
    }
  })
  return server.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
