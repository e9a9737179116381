import bcrypt from 'bcrypt'
import express, { type Express } from 'express'
import jwt from 'jsonwebtoken'
import type { Knex } from 'knex'
import supertest from 'supertest'
import { beforeAll, describe, expect, test } from 'vitest'
import { type AuthRouter, errorHandler, type KnexStore } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import {
  appWith,
  browserOf,
  createUsersTable,
  everyMove,
  expectOldPassword,
  type GivenOptions,
  type Move,
  oldSecret,
  onMove,
  rowsOf,
} from './moved-app'

const guide = readGuide<{
  prepare(knex: Knex): Promise<void>
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter; store: KnexStore }>
  findOldSession: Move['findOldSession']
}>('moving/jwt')

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { knex, options, signInWithGoogle } = onMove(sqlite)

const ada = { id: '1', email: 'ada@example.com', password: 'correct horse' }

/** The app before: jsonwebtoken 9 and bcrypt. */
function oldApp(): Express {
  const app = express()
  app.use(express.json())
  app.post('/login', async (req, res) => {
    const { id, password_hash } = await knex()('users').where({ email: req.body.email }).first()
    if (!(await bcrypt.compare(req.body.password, password_hash))) return void res.sendStatus(401)
    res.json({ token: jwt.sign({ id }, oldSecret, { expiresIn: '30d' }) })
  })
  return app
}

describe('from JWTs of your own', () => {
  let app: Express
  let token: string

  beforeAll(async () => {
    await createUsersTable(knex())
    const password_hash = await bcrypt.hash(ada.password, 10)
    const created_at = '2025-03-01 12:00:00' // an identity as old as its account would be fresh
    await knex()('users').insert([
      { email: ada.email, password_hash, name: 'Ada', google_id: 'google-1', created_at },
      { email: 'closed@example.com', password_hash, created_at },
    ])
    token = (await supertest(oldApp()).post('/login').send(ada)).body.token

    await guide.code.prepare(knex())
    const moved = await guide.code.createAuth(knex(), options())
    await moved.auth.service.deactivate('2')
    await everyMove.addIdentities(moved.store, await rowsOf(knex(), guide.sql[0] ?? ''))
    const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
    app = appWith(moved.auth, (app) => app.post('/exchange', everyMove.exchangeRoute(move)))
    app.use(errorHandler())
  })

  const exchange = (held: string) =>
    supertest(app)
      .post('/exchange')
      .set({ authorization: `Bearer ${held}` })

  test('the old password signs in, and its hash is replaced', () =>
    expectOldPassword(app, ada, async () => (await knex()('users').where({ id: 1 }).first()).password_hash))

  test('the Google account signs in to the account that it was linked to', async () => {
    expect((await signInWithGoogle(browserOf(app), 'google-1')).body).toMatchObject({ user_id: '1' })
  })

  test('a living token is exchanged once, for a session that refreshes and is not fresh', async () => {
    const { status, body } = await exchange(token)
    const who = (access: string) =>
      supertest(app)
        .get('/whoami')
        .set({ authorization: `Bearer ${access}` })
    expect([status, (await who(body.access_token)).body]).toEqual([200, { id: '1' }])
    const { body: refreshed } = await supertest(app).post('/auth/refresh').send({ refresh_token: body.refresh_token })
    expect((await who(refreshed.access_token)).body).toEqual({ id: '1' })
    const change = await supertest(app)
      .post('/auth/email-change/request')
      .set({ authorization: `Bearer ${refreshed.access_token}` })
      .send({ new_email: 'new@example.com', current_password: ada.password })
    expect(change).toMatchObject({ status: 403, body: { code: 'REAUTHENTICATION_REQUIRED' } })
    expect([(await exchange(token)).status, (await who(token)).status]).toEqual([401, 401])
  })

  test('a token that has expired, has another signature or none, or is of a closed account, is exchanged for nothing', async () => {
    const rows = await knex()('auth_sessions')
    const made = [
      jwt.sign({ id: 1 }, oldSecret, { expiresIn: -1 }),
      jwt.sign({ id: 1 }, `${oldSecret}?`),
      jwt.sign({ id: 1 }, oldSecret, { algorithm: 'HS512' }),
      jwt.sign({ id: 1 }, '', { algorithm: 'none' }),
      jwt.sign({ id: 2 }, oldSecret),
      jwt.sign({ id: 3 }, oldSecret),
      'junk',
    ]
    const answers = []
    for (const one of made) answers.push((await exchange(one)).status)
    expect(answers).toEqual(made.map(() => 401))
    expect(await knex()('auth_sessions')).toHaveLength(rows.length)
  })
})
