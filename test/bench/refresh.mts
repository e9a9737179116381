/**
 * Rotations per second and database calls per rotation: ours, and a hand-written one with knex that also reads the user. Both
 * spend a token, insert its child and sign an access token, one after the other on one connection, in turns. Prints medians
 * over the rounds and their ratio; fails when ours is slower. `npm run bench -- refresh [rounds]`, at a quiet moment.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { Knex } from 'knex'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'

const rounds = Number(process.argv.slice(2).find((given) => /^\d+$/.test(given)) ?? 15)
const perRound = 200
const secret = 'a secret for measuring, long enough'

/** Spends the token and hands out the next. */
type Rotate = (token: string) => Promise<string>

type Name = 'ours' | 'handWritten'
const names: readonly Name[] = ['ours', 'handWritten']

async function main(): Promise<number> {
  const ratios: number[] = []
  for (const database of await databases()) {
    if (database.name === 'mariadb') continue // the hand-written one needs UPDATE … RETURNING
    const opened = await database.open({ memory: true, pool: { min: 1, max: 1 } })
    await createAuthTables(opened.knex)
    ratios.push(await compare(database.name, opened.knex))
    await opened.close()
  }
  return Math.min(...ratios) >= 1 ? 0 : 1
}

async function compare(database: string, db: Knex): Promise<number> {
  const rotations: Record<Name, Rotate> = { ours: ours(db), handWritten: handWritten(db) }
  const tokens: Record<Name, string> = { ours: await newFamily(db, 'ours'), handWritten: await newFamily(db, 'theirs') }
  const speeds: Record<Name, number[]> = { ours: [], handWritten: [] }
  const calls: Record<Name, number> = { ours: 0, handWritten: 0 }
  for (let round = -2; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const begun = performance.now()
      for (let count = 0; count < perRound; count++) tokens[name] = await rotations[name](tokens[name])
      if (round >= 0) speeds[name].push((1000 * perRound) / (performance.now() - begun))
    }
  }
  for (const name of names) {
    const statements = recordQueries(db)
    await rotations[name](tokens[name])
    calls[name] = statements.stop().length
  }
  const ratio = median(speeds.ours) / median(speeds.handWritten)
  console.log(
    `${database}: ${rounds} rounds of ${perRound} rotations each; median per second, 10th and 90th percentile, calls per rotation`,
  )
  for (const name of names) {
    const [low, middle, high] = [0.1, 0.5, 0.9].map((share) => Math.round(quantile(speeds[name], share)))
    console.log(`  ${name.padEnd(12)} ${middle}  (${low} .. ${high})  ${calls[name]} calls`)
  }
  console.log(`  ratio ${ratio.toFixed(2)}`)
  return ratio
}

function ours(db: Knex): Rotate {
  const { service } = createAuthRouter({
    settings: { jwtSecret: secret, oauthRedirectBaseUrl: 'https://app.example.com' },
    store: createKnexStore({ knex: db }),
    environment: 'test',
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  return async (token) => {
    const next = await service.refresh(token)
    if (next.kind !== 'session') throw new Error('a refresh is no login')
    return next.refreshToken
  }
}

/** What a careful person would write: one guarded update, the user, the child. Instants as our tables keep them. */
function handWritten(db: Knex): Rotate {
  const isSqlite = db.client.dialect === 'sqlite3'
  const instant = (date: Date) => (isSqlite ? date.getTime() : date)
  return async (token) => {
    const next = randomBytes(32).toString('base64url')
    const now = new Date()
    const user = await db.transaction(async (trx) => {
      const [spent] = await trx('auth_refresh_tokens')
        .where({ token_hash: sha256(token), used_at: null, revoked_at: null })
        .where('expires_at', '>', instant(now))
        .where('family_expires_at', '>', instant(now))
        .update({ used_at: instant(now) })
        .returning('*')
      const owner = await trx('auth_users').where({ id: spent.user_id, is_active: true }).first()
      if (!owner) throw new Error('inactive')
      const { id: parent_id, user_id, family_id, family_expires_at, amr } = spent
      const expires_at = instant(new Date(Math.min(now.getTime() + 604_800_000, new Date(family_expires_at).getTime())))
      const child = { id: randomUUID(), token_hash: sha256(next), parent_id, user_id, family_id, family_expires_at, amr, expires_at }
      await trx('auth_refresh_tokens').insert({ ...child, created_at: instant(now) })
      return owner
    })
    const iat = Math.floor(now.getTime() / 1000)
    jwt.sign({ sub: user.id, email: user.email, amr: ['pwd'], iat, exp: iat + 900, typ: 'access' }, secret)
    return next
  }
}

async function newFamily(db: Knex, name: string): Promise<string> {
  const store = createKnexStore({ knex: db })
  const [token, now] = [randomBytes(32).toString('base64url'), new Date()]
  const user = await store.users.insert({
    isActive: true,
    createdAt: now,
    updatedAt: now,
    email: `${name}@example.test`,
    hashedPassword: '$argon2id$fake',
    isAdmin: false,
    lastLoginAt: now,
    name: 'Zoë',
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: now,
    activatedAt: now,
    passwordSetAt: now,
  })
  await store.refreshTokens.insert({
    id: randomUUID(),
    userId: user.id,
    tokenHash: sha256(token),
    familyId: randomUUID(),
    parentId: null,
    amr: 'pwd',
    expiresAt: new Date(now.getTime() + 604_800_000),
    familyExpiresAt: new Date(now.getTime() + 2_592_000_000),
    usedAt: null,
    revokedAt: null,
    createdAt: now,
  })
  return token
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}

process.exit(await main())
