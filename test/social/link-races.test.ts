import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, type KnexStore } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { addIdentity, addUser } from './accounts-at-hand'
import type { Answer, Profile, Task } from './link-races-child'

for (const database of await databases()) {
  describe(`login, link and unlink from two processes on one ${database.name} database`, { timeout: raceTimeout(60_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    let pair: ProcessPair<Task, Answer>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      pair = await startPair(join(import.meta.dirname, 'link-races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const owners = async ({ provider, subject }: Profile): Promise<string[]> =>
      (await opened.knex('auth_identities').where({ provider, subject })).map((row: { user_id: string }) => row.user_id)
    const sessions = async (userId: string) => (await opened.knex('auth_sessions').where({ user_id: userId })).length
    const identities = async (userId: string) => (await store.identities.listForUser(userId)).map(({ provider }) => provider)

    test('C14: first logins of one identity make one account with one identity, and both are in', async () => {
      await repeat(async () => {
        const profile = somebody({ emailVerified: true })
        const task: Task = { verb: 'logIn', profile }
        const [one, other] = await pair.race(task, task)

        const userId = accountOf(one)
        expect(accountOf(other)).toBe(userId)
        expect(await owners(profile)).toEqual([userId])
        expect(await opened.knex('auth_users').where({ email: profile.email })).toHaveLength(1)
        expect(await sessions(String(userId))).toBe(2)
      })
    })

    test('C15: a first login against a local signup with the same address makes one account, and no silent link', async () => {
      await repeat(async () => {
        const profile = somebody({ emailVerified: true })
        const [login, signUp] = await pair.race({ verb: 'logIn', profile }, { verb: 'signUp', email: String(profile.email) })

        const users = (await opened.knex('auth_users').where({ email: profile.email })).map((row: { id: string }) => row.id)
        expect(users).toHaveLength(1)
        const isLocal = accountOf(signUp) === users[0]
        expect(login).toEqual(isLocal ? { error: 'OAUTH_EMAIL_TAKEN' } : { value: users[0] })
        expect(signUp).toEqual(isLocal ? { value: users[0] } : { error: 'EMAIL_TAKEN' })
        expect(await owners(profile)).toEqual(isLocal ? [] : users)
      })
    })

    test.each([
      ['proved', new Date('2026-01-01T00:00:00.000Z')],
      ['never proved', null],
    ])(
      'C14: the first logins of one identity that link it by verified email, to an account that %s its address, both are in',
      async (_what, emailVerifiedAt) => {
        await repeat(async () => {
          const { id: userId, email } = await addUser(opened.knex, { emailVerifiedAt })
          const profile = somebody({ email, emailVerified: true })
          const task: Task = { verb: 'logIn', profile, linkByVerifiedEmail: true }

          expect(await pair.race(task, task)).toEqual([{ value: userId }, { value: userId }])
          expect(await owners(profile)).toEqual([userId])
          expect(await sessions(userId)).toBe(2)
        })
      },
    )

    test('two identities of one provider that link by verified email at once: one is linked, the other is told', async () => {
      await repeat(async () => {
        const { id: userId, email } = await addUser(opened.knex)
        const logIn = (): Task => ({ verb: 'logIn', profile: somebody({ email, emailVerified: true }), linkByVerifiedEmail: true })
        const reports = await pair.race(logIn(), logIn())

        expect(reports).toContainEqual({ value: userId })
        expect(reports).toContainEqual({ error: 'OAUTH_PROVIDER_ALREADY_LINKED' })
        expect(await identities(userId)).toEqual(['corp'])
      })
    })

    test('C16: two accounts link one identity: one has it, the other is 409 OAUTH_IDENTITY_TAKEN', async () => {
      const [ana, bob] = [await addUser(opened.knex), await addUser(opened.knex)]
      await repeat(async () => {
        await opened.knex('auth_identities').whereIn('user_id', [ana.id, bob.id]).delete()
        const profile = somebody()
        const reports = await pair.race({ verb: 'link', userId: ana.id, profile }, { verb: 'link', userId: bob.id, profile })

        const [owner] = await owners(profile)
        expect(reports).toEqual([ana.id, bob.id].map((id) => (id === owner ? { value: id } : { error: 'OAUTH_IDENTITY_TAKEN' })))
        expect(await owners(profile)).toHaveLength(1)
      })
    })

    test('C16: one account links two identities of one provider: one is linked, the other 409 OAUTH_PROVIDER_ALREADY_LINKED', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const profiles = [somebody(), somebody()] as const
        const reports = await pair.race({ verb: 'link', userId, profile: profiles[0] }, { verb: 'link', userId, profile: profiles[1] })

        expect(reports).toContainEqual({ value: userId })
        expect(reports).toContainEqual({ error: 'OAUTH_PROVIDER_ALREADY_LINKED' })
        expect(await identities(userId)).toEqual(['corp'])
      })
    })

    test('C16: one account links one identity twice: linked once, and both are told so', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const task: Task = { verb: 'link', userId, profile: somebody() }
        expect(await pair.race(task, task)).toEqual([{ value: userId }, { value: userId }])
        expect(await identities(userId)).toEqual(['corp'])
      })
    })

    test('C16: a link against the first login of the same identity: it has one owner, and everybody knows which', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const profile = somebody()
        const [link, login] = await pair.race({ verb: 'link', userId, profile }, { verb: 'logIn', profile })

        const all = await owners(profile)
        expect(all).toHaveLength(1)
        expect(login).toEqual({ value: all[0] })
        expect(link).toEqual(all[0] === userId ? { value: userId } : { error: 'OAUTH_IDENTITY_TAKEN' })
        // Whoever lost left nothing behind: no account without an identity.
        expect(await opened.knex('auth_users').where({ email: profile.email })).toHaveLength(all[0] === userId ? 0 : 1)
      })
    })

    test('C17: an unlink against a login by that identity: it came first, or there is no session', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const profile = { ...somebody(), email: null }
        await addIdentity(opened.knex, userId, profile)
        const [unlink, login] = await pair.race({ verb: 'unlink', userId, provider: 'corp' }, { verb: 'logIn', profile })

        expect(unlink).toEqual({ value: null })
        expect([{ value: userId }, { error: 'OAUTH_EMAIL_MISSING' }]).toContainEqual(login)
        expect(await sessions(userId)).toBe(accountOf(login) === userId ? 1 : 0)
        expect(await owners(profile)).toEqual([])
        expect(await pair.ask({ verb: 'logIn', profile })).toEqual({ error: 'OAUTH_EMAIL_MISSING' })
      })
    })

    test('C17: the last two identities unlinked at once: one goes, one stays, where nobody knows the password', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex, { passwordSetAt: null })
        for (const provider of ['corp', 'acme']) await addIdentity(opened.knex, userId, { provider })
        const reports = await pair.race({ verb: 'unlink', userId, provider: 'corp' }, { verb: 'unlink', userId, provider: 'acme' })

        expect(reports).toContainEqual({ value: null })
        expect(reports).toContainEqual({ error: 'LAST_LOGIN_METHOD' })
        expect(await identities(userId)).toHaveLength(1)
      })
    })

    test('a link against the unlink of the same provider: linked and gone, or still there, never half', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const profile = somebody()
        await addIdentity(opened.knex, userId, { provider: profile.provider, subject: profile.subject })
        const [link, unlink] = await pair.race({ verb: 'link', userId, profile }, { verb: 'unlink', userId, provider: 'corp' })

        expect([link, unlink]).toEqual([{ value: userId }, { value: null }])
        expect((await owners(profile)).length).toBeLessThanOrEqual(1)
      })
    })

    test('an identity moves from one account to another only through an unlink that came first', async () => {
      await repeat(async () => {
        const [ana, bob] = [await addUser(opened.knex), await addUser(opened.knex)]
        const profile = somebody()
        await addIdentity(opened.knex, ana.id, { provider: profile.provider, subject: profile.subject })
        const [unlink, link] = await pair.race(
          { verb: 'unlink', userId: ana.id, provider: 'corp' },
          { verb: 'link', userId: bob.id, profile },
        )

        expect(unlink).toEqual({ value: null })
        const isMoved = accountOf(link) === bob.id
        expect(link).toEqual(isMoved ? { value: bob.id } : { error: 'OAUTH_IDENTITY_TAKEN' })
        expect(await owners(profile)).toEqual(isMoved ? [bob.id] : [])
      })
    })

    test('a link against deactivation: it came first, or 403 ACCOUNT_INACTIVE', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const profile = somebody()
        const [link, deactivate] = await pair.race({ verb: 'link', userId, profile }, { verb: 'deactivate', userId })

        expect(deactivate).toEqual({ value: null })
        const isLinked = accountOf(link) === userId
        expect(link).toEqual(isLinked ? { value: userId } : { error: 'ACCOUNT_INACTIVE' })
        expect(await owners(profile)).toEqual(isLinked ? [userId] : [])
      })
    })
  })
}

function somebody(changes: Partial<Profile> = {}): Profile {
  const subject = randomUUID()
  return { provider: 'corp', subject, email: `${subject}@example.test`, emailVerified: null, ...changes }
}

function accountOf(report: Report<Answer>): string | null {
  return 'value' in report ? report.value : null
}
