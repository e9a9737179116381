import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Express } from 'express'
import type { Knex } from 'knex'
import supertest from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthRouter, errorHandler, type KnexStore, OidcClient } from '../../src'
import { appFolder, doorward } from '../command/run-command'
import { firebase } from '../passwords/legacy-hashes'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, expectOldPassword, type GivenOptions, type Move, onMove } from './moved-app'

const guide = readGuide<{
  prepare(knex: Knex): Promise<void>
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter; store: KnexStore }>
  convert(from: string, to: string): object[]
  findOldSession(client?: OidcClient): Move['findOldSession']
}>('moving/firebase')

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { knex, google, options, signInWithGoogle } = onMove(sqlite)

/** What firebase/export.cjs wrote with firebase-tools 15.34.2: accounts of Firebase's own emulator, as `auth:export --format=json` writes them. */
const accounts = join(import.meta.dirname, 'firebase/accounts.json')
const { users } = JSON.parse(readFileSync(accounts, 'utf8')) as { users: { localId: string; email?: string; createdAt: string }[] }
const uidOf = (address?: string) => users.find(({ email }) => email === address)?.localId ?? ''
const ada = { id: uidOf('ada@example.com'), email: 'ada@example.com', password: firebase.password }
const [closed, googleAlone, phoneAlone] = [uidOf('closed@example.com'), uidOf('g@example.com'), uidOf()]

describe('from Firebase Auth', () => {
  const answers: unknown[] = []
  let app: Express

  beforeAll(async () => {
    process.env['FIREBASE_SIGNER_KEY'] = firebase.parameters.signerKey
    process.env['FIREBASE_SALT_SEPARATOR'] = firebase.parameters.saltSeparator
    await guide.code.prepare(knex())
    const moved = await guide.code.createAuth(knex(), options())
    const folder = appFolder(moved.auth)
    const identities = guide.code.convert(accounts, join(folder, 'accounts.jsonl'))
    for (const command of guide.commands) answers.push(JSON.parse((await doorward(`${command} --json`, { folder })).out))
    await everyMove.addIdentities(moved.store, identities)
    // The fake provider in the place of Firebase's servers.
    const client = new OidcClient({ ...google().oidcOptions(), providerName: 'firebase' })
    const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession(client) }
    app = appWith(moved.auth, (app) => app.post('/exchange', everyMove.exchangeRoute(move)))
    app.use(errorHandler())
  })
  afterAll(() => {
    delete process.env['FIREBASE_SIGNER_KEY']
    delete process.env['FIREBASE_SALT_SEPARATOR']
  })

  const tokenOf = (profile: object, claims: object = {}) =>
    google().signJwt({ ...google().idTokenClaims({ profile: { ...profile } }), ...claims })
  const exchange = (token: string) =>
    supertest(app)
      .post('/exchange')
      .set({ authorization: `Bearer ${token}` })

  test('the dry run says what the import then does; who has no address is not in the file', async () => {
    expect(answers).toEqual([
      { imported: 3, skipped: 0, refused: [] },
      { imported: 3, skipped: 0, refused: [] },
    ])
    const rows = await knex()('people').orderBy('email')
    expect(rows.map(({ id, email, is_active }) => [id, email, Boolean(is_active)])).toEqual([
      [ada.id, ada.email, true],
      [closed, 'closed@example.com', false],
      [googleAlone, 'g@example.com', true],
    ])
    const createdAt = users.find(({ localId }) => localId === ada.id)?.createdAt
    expect([rows[0].email_verified_at, rows[1].email_verified_at]).toEqual([Number(createdAt), null])
  })

  test('the old password signs in to the account with the old uid, and its hash is replaced', () =>
    expectOldPassword(app, ada, async () => (await knex()('people').where({ id: ada.id }).first()).hashed_password))

  test('the Google accounts sign in to the accounts that they were linked to, also one without a password', async () => {
    for (const [sub, id] of Object.entries({ 'google-1': ada.id, 'google-2': googleAlone }))
      expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
  })

  test('a fresh token of Firebase is exchanged once, for a session that refreshes', async () => {
    const token = tokenOf({ sub: ada.id })
    const { status, body } = await exchange(token)
    expect(status).toBe(200)
    const who = await supertest(app)
      .get('/whoami')
      .set({ authorization: `Bearer ${body.access_token}` })
    const refreshed = await supertest(app).post('/auth/refresh').send({ refresh_token: body.refresh_token })
    expect([who.body, refreshed.status]).toEqual([{ id: ada.id }, 200])
    expect((await exchange(token)).status).toBe(401)
  })

  test('a token for another project, one that is older than ten minutes, and one of a closed or unknown account are exchanged for nothing', async () => {
    const now = Math.floor(Date.now() / 1000)
    const made = [
      tokenOf({ sub: ada.id }, { aud: 'another-project' }),
      tokenOf({ sub: ada.id }, { iat: now - 700 }),
      tokenOf({ sub: ada.id }, { exp: now - 120 }),
      tokenOf({ sub: ada.id }, { iss: 'https://securetoken.google.com/another-project' }),
      tokenOf({ sub: closed }),
      tokenOf({ sub: phoneAlone }),
      'junk',
    ]
    const answered = []
    for (const token of made) answered.push((await exchange(token)).status)
    expect(answered).toEqual(made.map(() => 401))
  })
})
