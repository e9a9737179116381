import { describe, expect, test } from 'vitest'
import { type AuthStore, createAuthTables, createGuards, createKnexStore } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { recheckedStore } from '../../src/store/rechecked-store'
import { type Mounted, signIn, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, rowCounts, userById } from './accounts-at-hand'
import { member } from './link-steps'
import { newPerson, onDatabase } from './redirect-steps'

type Changes = { [Table in keyof AuthStore]?: Partial<AuthStore[Table]> }

/** Our own store, some verbs of which answer as a careless adapter would; inside units of work too. */
function careless(real: AuthStore, change: (real: AuthStore) => Changes): AuthStore {
  const changes = change(real)
  const tables = Object.keys(changes) as (keyof AuthStore)[]
  const replaced = Object.fromEntries(tables.map((table) => [table, { ...real[table], ...changes[table] }]))
  return { ...real, ...replaced, transaction: (work) => real.transaction((inside) => work(careless(inside, change))) }
}

const [database] = await databases()
if (!database) throw new Error('no database answers')

describe('R-069: what an adapter answers is compared with what was asked', () => {
  const { start, opened } = onDatabase(database, { memory: true })
  const linking = { settings: { oauthLinkByVerifiedEmail: true } }

  async function mountCareless(change: (real: AuthStore) => Changes): Promise<Mounted> {
    await createAuthTables(opened().knex)
    return start({ ...linking, options: { store: careless(createKnexStore({ knex: opened().knex }), change) } })
  }

  const logged = (host: Mounted) =>
    host.logs.entries.filter(({ message }) => /does not match the request/.test(message)).map(({ fields }) => fields)

  test("an account with an address that is only alike is nobody's: it is not linked to", async () => {
    let victim: UserRecord | null = null
    const host = await mountCareless(() => ({ users: { findByEmail: async () => victim } }))
    victim = await addUser(host.knex, { email: 'ana@example.test' })

    const response = await signIn(host, host.browser(), { profile: newPerson({ email: 'an4@example.test' }) })

    expect(response.status).toBe(200)
    expect(response.body.user_id).not.toBe(victim.id)
    expect(await host.auth.service.listIdentities(victim.id)).toEqual([])
    expect(logged(host)).toEqual([{ verb: 'users.findByEmail' }])
    expect(host.logs.text()).not.toContain('ana@example.test')
  })

  test.each<[string, { subject?: string; provider?: string }]>([
    ['another subject', { subject: 'AbC' }],
    ['a subject with a trailing blank', { subject: 'abc ' }],
    ['another provider', { subject: 'abc', provider: 'CORP' }],
  ])('an identity of %s logs nobody in', async (_what, near) => {
    let row: Awaited<ReturnType<NonNullable<AuthStore['identities']>['findWithUser']>> = null
    const host = await mountCareless(() => ({ identities: { findWithUser: async () => row } }))
    const victim = await addUser(host.knex)
    row = { user: victim, identity: { ...(await addIdentity(host.knex, victim.id)), ...near } }

    const response = await signIn(host, host.browser(), { profile: newPerson({ sub: 'abc', email: `abc${Math.random()}@example.test` }) })
    await host.knex('auth_identities').where({ subject: 'abc' }).delete()

    expect(response.body.user_id).not.toBe(victim.id)
    expect(logged(host)).toContainEqual({ verb: 'identities.findWithUser' })
  })

  test("an identity joined to another's account logs nobody in", async () => {
    let mixed: Awaited<ReturnType<NonNullable<AuthStore['identities']>['findWithUser']>> = null
    const host = await mountCareless(() => ({ identities: { findWithUser: async () => mixed } }))
    const [victim, other] = [await addUser(host.knex), await addUser(host.knex)]
    const person = newPerson()
    mixed = { user: victim, identity: await addIdentity(host.knex, other.id, { subject: person.sub }) }
    const before = await rowCounts(host.knex)

    const response = await signIn(host, host.browser(), { profile: person })

    expect([response.status, response.body.code]).toEqual([503, 'SERVICE_UNAVAILABLE'])
    expect(await rowCounts(host.knex)).toEqual(before)
  })

  test('a recorded login of somebody else issues no session', async () => {
    let victim: UserRecord | null = null
    const host = await mountCareless(() => ({ identities: { recordLogin: async () => victim } }))
    const ana = await member(await start(linking))
    victim = await addUser(host.knex)

    const response = await signIn(host, host.browser(), { profile: ana.profile })

    expect(response.status).toBe(503)
    expect(await host.knex('auth_sessions').where({ user_id: victim.id })).toEqual([])
    expect(logged(host)).toContainEqual({ verb: 'identities.recordLogin' })
  })

  test('an adapter that returns who has the address instead of inserting signs nobody in to that account', async () => {
    let victim: UserRecord | null = null
    const host = await mountCareless(() => ({ users: { insert: async () => victim as UserRecord, findByEmail: async () => null } }))
    victim = await addUser(host.knex)

    const response = await signIn(host, host.browser(), { profile: newPerson({ email: victim.email }) })

    expect([response.status, response.body.code]).toEqual([500, 'INTERNAL_ERROR'])
    expect(await host.knex('auth_sessions').where({ user_id: victim.id })).toEqual([])
    expect(await host.auth.service.listIdentities(victim.id)).toEqual([])
  })

  test("a list with rows of others shows the caller's own, and /me of another's row is 401", async () => {
    let victim: UserRecord | null = null
    const host = await mountCareless((real) => ({
      identities: {
        listForUser: async (userId) => [
          ...((await real.identities?.listForUser(userId)) ?? []),
          ...(victim ? ((await real.identities?.listForUser(victim.id)) ?? []) : []),
        ],
      },
      users: { find: async (id) => victim ?? real.users.find(id) },
    }))
    const ana = await member(host)
    victim = await addUser(host.knex)
    await addIdentity(host.knex, victim.id, { provider: 'secret' })
    const get = (path: string) => host.browser().get(path).set('Authorization', `Bearer ${ana.token}`)

    expect((await get('/auth/oauth/accounts')).body.map(({ provider }: { provider: string }) => provider)).toEqual(['corp'])
    const me = await get('/auth/me')
    expect([me.status, me.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect(me.text).not.toContain(victim.email)
  })

  test('createGuards alone compares too', async () => {
    const host = await start(linking)
    const ana = await member(host)
    const victim = await addUser(host.knex)
    const { users, ...rest } = createKnexStore({ knex: host.knex })
    const store = { ...rest, users: { ...users, find: async () => userById(host.knex, victim.id) } }
    const guards = createGuards({ settings: { jwtSecret: testSecret }, store, now: host.clock.now })
    host.app.get('/guarded', guards.requireUser(), (_req, res) => void res.json({}))
    expect((await host.browser().get('/guarded').set('Authorization', `Bearer ${ana.token}`)).status).toBe(401)
  })

  test('single-use rows of another hash or purpose are none', async () => {
    const reports: string[] = []
    const token = { tokenHash: 'a', purpose: 'ACTIVATION' }
    const user = { id: 'u' }
    let userId = 'u'
    const answers = {
      userTokens: { consume: async () => token },
      sessions: {
        find: async () => ({ session: { id: 's', tokenHash: 'a', kind: 'tokens', userId }, user }),
        lock: async () => ({ id: 's' }),
        rotate: async () => ({ session: { id: 's', userId }, user }),
        listForUser: async () => [{ userId: 'u' }, { userId: 'v' }],
      },
      users: { lock: async () => user },
    } as unknown as AuthStore // what is asked of it below
    const store = recheckedStore(answers, (verb) => reports.push(verb))
    const at = new Date(0)
    const rotation = { tokenHash: 'a', successorHash: 'b', generation: 1, expiresAt: at, at }

    expect(await store.userTokens.consume('a', 'ACTIVATION', at)).toBe(token)
    expect(await store.sessions?.find({ id: 's' })).not.toBeNull()
    expect(await store.sessions?.find({ tokenHash: 'a', kind: 'tokens' })).not.toBeNull()
    expect(await store.sessions?.lock('s', at)).not.toBeNull()
    expect(await store.sessions?.rotate(rotation)).not.toBeNull()
    expect(await store.users.lock('u')).toBe(user)
    expect(reports).toEqual([])

    expect(await store.userTokens.consume('A', 'ACTIVATION', at)).toBeNull()
    expect(await store.userTokens.consume('a', 'PASSWORD_RESET', at)).toBeNull()
    expect(await store.sessions?.find({ id: 'S' })).toBeNull()
    expect(await store.sessions?.find({ tokenHash: 'A', kind: 'tokens' })).toBeNull()
    expect(await store.sessions?.find({ tokenHash: 'a', kind: 'session' })).toBeNull()
    expect(await store.sessions?.lock('S', at)).toBeNull()
    userId = 'v'
    expect(await store.sessions?.find({ id: 's' })).toBeNull()
    expect(await store.sessions?.rotate(rotation)).toBeNull()
    expect(await store.sessions?.listForUser('u', at)).toEqual([{ userId: 'u' }])
    expect(await store.users.lock('U')).toBeNull()
    expect(reports).toEqual([
      'userTokens.consume',
      'userTokens.consume',
      'sessions.find',
      'sessions.find',
      'sessions.find',
      'sessions.lock',
      'sessions.find',
      'sessions.rotate',
      'sessions.listForUser',
      'users.lock',
    ])
  })
})
