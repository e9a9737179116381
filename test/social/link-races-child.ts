/** The other processes of link-races.test.ts: a whole service each, on the same database. */
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore, type OAuthUser, type ProviderClient } from '../../src'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { serveTasks } from '../support/two-processes'

export type Profile = Pick<OAuthUser, 'provider' | 'subject' | 'email' | 'emailVerified'>

export type Task =
  | { verb: 'logIn'; profile: Profile; linkByVerifiedEmail?: boolean }
  | { verb: 'link'; userId: string; profile: Profile }
  | { verb: 'unlink'; userId: string; provider: string }
  | { verb: 'signUp'; email: string }
  | { verb: 'deactivate'; userId: string }

/** The account that was signed in, signed up or linked, if any. */
export type Answer = { value: string | null }

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

interface Services {
  plain: AuthService
  linking: AuthService
}

async function perform({ plain: service, linking }: Services, task: Task): Promise<string | null> {
  const full = (profile: Profile): OAuthUser => ({ ...profile, name: null, picture: null, raw: {} })
  switch (task.verb) {
    case 'logIn':
      return (await (task.linkByVerifiedEmail ? linking : service).logInWithIdentity(full(task.profile))).userId
    case 'link':
      return (await service.linkIdentity(task.userId, full(task.profile))).userId
    case 'unlink':
      await service.unlinkIdentity(task.userId, task.provider)
      return null
    case 'signUp':
      return (await service.signUp({ email: task.email, password: 'a quiet harbour in winter' }))[0].id
    case 'deactivate':
      await service.deactivate(task.userId)
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

serveTasks<Task, Answer>(
  (db) => {
    const services = { plain: serviceOn(db, {}), linking: serviceOn(db, { oauthLinkByVerifiedEmail: true }) }
    return async (task) => ({ value: await perform(services, task) })
  },
  { connections: 2 },
)
