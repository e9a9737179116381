/**
 * Logins by passkey, one after the other in this process: how much CPU each takes on the main thread, how much of it
 * `@simplewebauthn/server` takes to verify the same responses, and how many round trips to the database. Fails when doorward misses a goal.
 * The scheduler of Linux says what a thread took; elsewhere it is the whole process.
 * `npm run bench -- passkey-login [--rounds 4] [--quick] [--write]`, at a quiet moment.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type AuthenticationResponseJSON, verifyAuthenticationResponse } from '@simplewebauthn/server'
import knex, { type Knex } from 'knex'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { virtualAuthenticator } from '../../src/testing'
import { readOptions } from './lib/options.mjs'
import { createSchema, hasPostgres } from './lib/postgres-schema.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds } from './lib/rounds.mjs'

const options = readOptions({ rounds: 4 })
const logins = options.quick ? 100 : 500
const [mostCpuMilliseconds, mostRoundTrips] = [2, 5]
const origin = 'https://app.example.test'

interface Contestant {
  readonly name: string
  readonly database: Knex
  /** Signs so many responses. `logIn` does a login with each, `verify` only what the package does for it. */
  prepare(count: number): Promise<{ logIn(): Promise<void>; verify(): Promise<void> }>
  stop(): Promise<void>
}

async function main(): Promise<number> {
  const contestants = [await contestant('SQLite', sqlite()), ...((await hasPostgres()) ? [await onPostgres()] : [])]
  const names = contestants.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, async (name) => {
    const one = contestants.find((each) => each.name === name)
    if (!one) throw new Error(`nobody is called ${name}`)
    return measure(one)
  })
  for (const { stop } of contestants) await stop()
  return report({
    name: 'passkey-login',
    columns: ['Login by passkey, on', 'logins/s', 'CPU ms/login', 'of it the signature', 'round trips'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'perSecond'),
      measured.median(name, 'cpuMilliseconds'),
      measured.median(name, 'signatureMilliseconds'),
      measured.median(name, 'roundTrips'),
    ]),
    goals: names.flatMap((name) => [
      {
        text: `${name}: CPU ms of the main thread, beside the signature`,
        presented: measured.median(name, 'ownMilliseconds'),
        bound: 'at most',
        wanted: mostCpuMilliseconds,
      } as const,
      ...(name === 'PostgreSQL'
        ? [
            {
              text: `${name}: round trips`,
              presented: measured.median(name, 'roundTrips'),
              bound: 'at most',
              wanted: mostRoundTrips,
            } as const,
          ]
        : []),
    ]),
    packages: ['@simplewebauthn/server', 'better-sqlite3', 'pg', 'knex'],
    options,
  })
}

async function measure({ database, prepare }: Contestant) {
  const { logIn, verify } = await prepare(logins)
  const signatureMilliseconds = (await cpuMillisecondsOf(verify)) / logins
  let statements = 0
  const count = () => {
    statements += 1
  }
  database.on('query', count)
  const began = performance.now()
  const cpuMilliseconds = (await cpuMillisecondsOf(logIn)) / logins
  const seconds = (performance.now() - began) / 1000
  database.removeListener('query', count)
  return {
    perSecond: logins / seconds,
    cpuMilliseconds,
    signatureMilliseconds,
    ownMilliseconds: cpuMilliseconds - signatureMilliseconds,
    roundTrips: statements / logins,
  }
}

async function cpuMillisecondsOf(work: () => Promise<void>): Promise<number> {
  const before = mainThreadMilliseconds()
  await work()
  return mainThreadMilliseconds() - before
}

/** The CPU time that the main thread has used so far. */
function mainThreadMilliseconds(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}

async function contestant(name: string, database: Knex, end = async () => undefined as unknown): Promise<Contestant> {
  await createAuthTables(database)
  const store = createKnexStore({ knex: database })
  const { service } = createAuthRouter({
    settings: {
      jwtSecret: randomBytes(48).toString('base64'),
      publicUrl: origin,
      passkeysEnabled: true,
      maxSessionsPerUser: 0,
      webauthnRpName: 'Bench',
    },
    store,
    environment: 'test',
    throttle: { login: false },
    logger: { info() {}, warn() {}, error: console.error },
  })
  const now = new Date()
  const [user] = await service.signUp({ email: 'person@example.test', password: 'a quiet harbour in winter' })
  await store.users.update(user.id, { isActive: true, emailVerifiedAt: now, activatedAt: now })
  const authenticator = virtualAuthenticator({ origin })
  const begun = await service.passkeyRegistrationOptions({ userId: user.id })
  await service.registerPasskey({ userId: user.id, credential: authenticator.create(begun.options), challenge: begun.challenge })
  const [stored] = (await store.passkeys?.listForUser(user.id)) ?? []
  if (!stored) throw new Error('the passkey is not stored')
  const passkey = { id: stored.credentialId, publicKey: Buffer.from(stored.publicKey, 'base64url') }
  return {
    name,
    database,
    async prepare(count) {
      const presented: { credential: AuthenticationResponseJSON; challenge: string; expectedChallenge: string }[] = []
      while (presented.length < count) {
        const { options, challenge } = await service.passkeyLoginOptions()
        const credential = authenticator.get(options) as unknown as AuthenticationResponseJSON // the same shape, by another name
        presented.push({ credential, challenge, expectedChallenge: options.challenge })
      }
      return {
        async logIn() {
          for (const { credential, challenge } of presented) await service.logInWithPasskey({ credential, challenge })
        },
        async verify() {
          for (const { credential, expectedChallenge } of presented) {
            const { verified } = await verifyAuthenticationResponse({
              response: credential,
              expectedChallenge,
              expectedOrigin: origin,
              expectedRPID: 'app.example.test',
              credential: { ...passkey, counter: 0 },
            })
            if (!verified) throw new Error('the package refused a response')
          }
        },
      }
    },
    async stop() {
      await database.destroy()
      await end()
    },
  }
}

async function onPostgres(): Promise<Contestant> {
  const schema = await createSchema()
  return contestant('PostgreSQL', schema.connect(), schema.drop)
}

function sqlite(): Knex {
  return knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true, pool: { min: 1, max: 1 } })
}

process.exit(await main())
