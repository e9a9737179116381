/** The other process of link-races.test.ts: a whole service on the same database; waits for the barrier, does one task, reports. */
import knex, { type Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore, type OAuthUser, type ProviderClient } from '../../src'
import { AppError } from '../../src/errors'
import { withoutFsync } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'

export type Profile = Pick<OAuthUser, 'provider' | 'subject' | 'email' | 'emailVerified'>

export type Task =
  | { verb: 'logIn'; profile: Profile; linkByVerifiedEmail?: boolean }
  | { verb: 'link'; userId: string; profile: Profile }
  | { verb: 'unlink'; userId: string; provider: string }
  /** What a local signup does to the table. */
  | { verb: 'signUp'; email: string }
  | { verb: 'deactivate'; userId: string }

export type Order = { config: Knex.Config } | { startAt: number; task: Task }

/** `value`: the account that was signed in, signed up or linked, if any. `error`: the code a client would see. */
export type Report = 'ready' | { value: string | null } | { error: string }

const secret = 'the same secret in both processes, long enough'

/** Nobody is asked: profiles are given. */
const client = (providerName: string): ProviderClient => ({
  providerName,
  clientId: 'app',
  authorizeUrl: `https://${providerName}.example/authorize`,
  tokenUrl: `https://${providerName}.example/token`,
  scopes: [],
  exchangeCode: () => Promise.reject(new Error('no code here')),
  fetchUser: () => Promise.reject(new Error('no token here')),
})

let db: Knex | undefined
let services: { plain: AuthService; linking: AuthService } | undefined

async function perform({ plain: service, linking }: NonNullable<typeof services>, db: Knex, task: Task): Promise<string | null> {
  const store = createKnexStore({ knex: db })
  const full = (profile: Profile): OAuthUser => ({ ...profile, name: null, picture: null, raw: {} })
  switch (task.verb) {
    case 'logIn':
      return (await (task.linkByVerifiedEmail ? linking : service).logInWithIdentity(full(task.profile))).userId
    case 'link':
      return (await service.linkIdentity(task.userId, full(task.profile))).userId
    case 'unlink':
      await service.unlinkIdentity(task.userId, task.provider)
      return null
    case 'signUp': {
      const now = new Date()
      const stamps = { createdAt: now, updatedAt: now, activatedAt: now, passwordSetAt: now, lastLoginAt: null, emailVerifiedAt: null }
      const factor = { totpSecret: null, totpEnabledAt: null, totpLastStep: null }
      const account = { email: task.email, hashedPassword: 'test$x', name: 'Local', isActive: true, isAdmin: false, ...stamps, ...factor }
      return (await store.users.insert(account)).id
    }
    case 'deactivate':
      await store.transaction(async (inside) => {
        await inside.users.update(task.userId, { isActive: false })
        await inside.refreshTokens?.revokeForUser(task.userId, new Date())
      })
      return null
  }
}

function serviceOn(knex: Knex, settings: object): AuthService {
  const base = { jwtSecret: secret, oauthEnabled: true, oauthRedirectBaseUrl: 'https://app.example.test', oauthKeepLastLoginMethod: true }
  const auth = createAuthRouter({
    settings: { ...base, ...settings },
    store: createKnexStore({ knex }),
    providers: { corp: client('corp'), acme: client('acme') },
    environment: 'test',
    passwordHasher: fastHasher(),
    logger: logTap(),
  })
  return auth.service
}

async function obey(order: Order): Promise<Report> {
  if ('config' in order) {
    const pool = { min: 1, max: 2 }
    db = knex({ ...order.config, pool: order.config.client === 'better-sqlite3' ? withoutFsync({ min: 1, max: 1 }) : pool })
    services = { plain: serviceOn(db, {}), linking: serviceOn(db, { oauthLinkByVerifiedEmail: true }) }
    await db.raw('select 1') // connected before the first barrier
    return 'ready'
  }
  if (!db || !services) return { error: 'no database yet' }
  // Spinning, not a timer: both leave the barrier within a fraction of a millisecond.
  while (performance.timeOrigin + performance.now() < order.startAt);
  try {
    return { value: await perform(services, db, order.task) }
  } catch (error) {
    return { error: error instanceof AppError ? error.code : error instanceof Error ? error.name : 'unknown' }
  }
}

process.on('message', (order: Order) => void obey(order).then((report) => process.send?.(report)))
process.on('disconnect', () => void db?.destroy())
