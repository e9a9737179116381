import express from 'express'
import knex from 'knex'
import { createAuthRouter, createGuards, createKnexStore } from '../../src'
import { fastHasher } from '../support/fast-hasher'

/** What a process of `rotate-under-load.test.ts` is: one of the app's, or a service that checks its tokens. */
export interface Part {
  readonly database: object | null
  readonly jwksUri: string
  /** How far the clock of all processes is ahead, in milliseconds; later messages move it. */
  readonly ahead: number
}

export interface Move {
  readonly ahead: number
}

function main({ database, jwksUri, ...first }: Part): void {
  let { ahead } = first
  process.on('message', (move: Move) => {
    ahead = move.ahead
  })
  const now = () => new Date(Date.now() + ahead)
  const quiet = { info: () => {}, warn: () => {}, error: () => {} }
  const app = express()
  if (database) {
    const auth = createAuthRouter({
      settings: {
        jwtSecret: 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN',
        jwtKeys: JSON.parse(process.env['AUTH_JWT_KEYS'] ?? '[]'),
        publicUrl: 'http://localhost:3000',
        backendLinks: true,
        autoActivate: true,
      },
      store: createKnexStore({ knex: knex(database) }),
      environment: 'test',
      passwordHasher: fastHasher(),
      throttle: { routes: false },
      logger: quiet,
      now,
    })
    app.use('/auth', auth)
  } else {
    const guards = createGuards({ settings: { jwksUri }, logger: quiet, now })
    app.get('/protected', guards.requireAuth(), (_req, res) => void res.json({}))
  }
  const server = app.listen(0, '127.0.0.1', () => process.send?.((server.address() as { port: number }).port)) // a TCP server
}

process.once('message', (part: Part) => main(part))
