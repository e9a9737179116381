/**
 * Notifications over Socket.IO, for an app that keeps its tokens. The client sends its access token in the handshake (`auth.token`), never
 * in a URL. The server closes the connection when the session ends: with 1008, or with 3000 when the access token has expired. The client
 * library then connects again, and asks the app for a token, which the app refreshes first.
 *
 *   npm install socket.io
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx socket-io.ts
 *
 * In the app:  const socket = io('http://localhost:3000', { transports: ['websocket'], auth: async (send) => send({ token: await token() }) })
 *              socket.on('disconnect', (_, details) => { if (details?.context?.code === 1008) socket.disconnect() }) // signed out
 *              socket.on('connect_error', ({ data }) => { if (data?.code === 'TOKEN_EXPIRED') socket.connect() })
 */
import { createServer } from 'node:http'
import { createAuthRouter, createAuthTables, createKnexStore, errors, type VerifiedCredential } from 'doorward'
import express from 'express'
import knex from 'knex'
import { type DefaultEventsMap, Server } from 'socket.io'

const [sessionEnded, tokenExpired] = [1008, 3000]

export async function start(port = 3000, { filename = 'app.sqlite', accessTokenTtlSeconds = 900 } = {}) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: 'http://localhost:3000', // mailed links begin with this URL
      tokenDelivery: 'bearer',
      accessTokenTtlSeconds,
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  const server = createServer(app)
  type Data = { person: VerifiedCredential }
  const io = new Server<DefaultEventsMap, DefaultEventsMap, DefaultEventsMap, Data>(server, { transports: ['websocket'] })

  io.use(async (socket, next) => {
    try {
      socket.data.person = await auth.guards.verifyToken(socket.handshake.auth['token']) // by cookie: guards.verify(socket.handshake)
      next()
    } catch (error) {
      const code = error instanceof errors.AppError ? error.code : 'INTERNAL_ERROR'
      next(Object.assign(new Error(code), { data: { code } })) // the client gets it as connect_error
    }
  })
  io.on('connection', (socket) => {
    const { userId, signal, release } = socket.data.person
    socket.on('disconnect', release) // without it, doorward would watch the session of a closed socket
    signal.addEventListener('abort', () => {
      const isExpired = signal.reason instanceof errors.TokenExpiredError
      // Socket.IO itself has no close codes; its transport is a WebSocket of ws.
      const { websocket } = socket.conn.request as { websocket?: { close(code: number, reason: string): void } }
      if (websocket) websocket.close(isExpired ? tokenExpired : sessionEnded, signal.reason.code)
      else socket.disconnect(true) // the handshake came by polling
    })
    socket.use((_packet, next) => {
      if (!signal.aborted) next() // messages can still arrive until the client answers the close
    })
    socket.join(`user:${userId}`)
    socket.on('notify', (text: unknown) => io.to(`user:${userId}`).emit('notice', String(text))) // all devices of this person
  })
  return server.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
