import { describe, expect, test } from 'vitest'
import { type AuthStore, createKnexStore } from '../../src'
import { createHttpClient, type HttpClient } from '../../src/core/http-client'
import { DuplicateRecordError } from '../../src/store/auth-store'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, someTime, userByEmail, userById } from './accounts-at-hand'
import { bearer, begin, callBack, type HttpResponse, newPerson, onDatabase } from './redirect-steps'

const linking = { oauthLinkByVerifiedEmail: true }

describe.each(await databases())('on $name', (database) => {
  const { start, opened } = onDatabase(database)

  function liveSessions(userId: string) {
    return opened().knex('auth_sessions').where({ user_id: userId }).whereNull('revoked_at')
  }

  test('C14: ten first logins of one identity at once: one user, one identity, ten sessions', async () => {
    const host = await start()
    const person = newPerson()

    const responses = await Promise.all(Array.from({ length: 10 }, () => signIn(host, host.browser(), { profile: person })))

    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const ids = new Set(responses.map(({ body }) => body.user_id))
    expect(ids.size).toBe(1)
    expect(await host.knex('auth_users').where({ email: person.email })).toHaveLength(1)
    expect(await host.knex('auth_identities').where({ subject: person.sub })).toHaveLength(1)
    expect(await liveSessions([...ids][0])).toHaveLength(10)
  })

  test('C14: observers are told of one signup and one link', async () => {
    const host = await start()
    const told: string[] = []
    for (const name of ['signup', 'identity.linked', 'login'] as const) host.auth.events.on(name, () => told.push(name))
    const person = newPerson()
    const responses = await Promise.all(Array.from({ length: 5 }, () => signIn(host, host.browser(), { profile: person })))
    expect(responses.map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect(told.sort()).toEqual(['identity.linked', ...Array(5).fill('login'), 'signup'])
  })

  test('C15: a first login racing another row with its email: one account, and a login or 409, never a 5xx', async () => {
    const host = await start()
    for (let round = 0; round < 10; round += 1) {
      const person = newPerson()
      const attempt = await begin(host, { profile: person })
      const signup = () => addUser(host.knex, { email: person.email }).then(() => 'signed up', readDuplicate)
      const login = () => callBack(host, attempt.query, attempt)
      const [response, row] = await (round % 2 === 0
        ? Promise.all([login(), signup()])
        : Promise.all([signup(), login()]).then(([first, second]) => [second, first] as const))

      expect([200, 409]).toContain(response.status)
      expect(row).toBe(response.status === 200 ? 'refused' : 'signed up')
      expect(await host.knex('auth_users').where({ email: person.email })).toHaveLength(1)
      expect(await host.knex('auth_identities').where({ subject: person.sub })).toHaveLength(response.status === 200 ? 1 : 0)
    }
  })

  describe('what changes between the look and the act is looked at again', () => {
    type Moment = 'after the looks' | 'between the looks'

    /** `change` happens once: right after the login has seen all it decides by, or between identity and address. */
    function changing(change: () => Promise<unknown>, moment: Moment): AuthStore {
      let pending: (() => Promise<unknown>) | null = change
      let looks = 0
      const happen = async () => {
        const now = pending
        pending = null
        await now?.()
      }
      const store = createKnexStore({ knex: opened().knex })
      const { identities, users } = store
      return {
        ...store,
        identities: {
          ...identities,
          findWithUser: async (provider, subject) => {
            const found = await identities.findWithUser(provider, subject)
            looks += 1
            // The second look at the identity, after the address had an owner, is the last.
            if (found || looks === 2 || moment === 'between the looks') await happen()
            return found
          },
        },
        users: {
          ...users,
          findByEmail: async (email) => {
            const found = await users.findByEmail(email)
            if (!found) await happen()
            return found
          },
        },
      }
    }

    async function signInWhile(
      change: () => Promise<unknown>,
      profile: Record<string, unknown>,
      { settings = {}, moment = 'after the looks' }: { settings?: object; moment?: Moment } = {},
    ): Promise<HttpResponse> {
      const host = await start({ settings, options: { store: changing(change, moment) } })
      return signIn(host, host.browser(), { profile })
    }

    const refusal = ({ status, body }: HttpResponse) => [status, body.code]

    test('C17: the link is removed: 409, and no session of the removed link', async () => {
      const host = await start()
      const user = await addUser(host.knex)
      const { subject } = await addIdentity(host.knex, user.id)
      const response = await signInWhile(
        () => host.auth.service.unlinkIdentity(user.id, 'corp'),
        newPerson({ sub: subject, email: user.email }),
      )
      expect(refusal(response)).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
      expect(await liveSessions(user.id)).toEqual([])
      expect((await userById(host.knex, user.id)).lastLoginAt).toBeNull()
    })

    test('C20: the account is deactivated: 401, and no session', async () => {
      const host = await start()
      const user = await addUser(host.knex)
      const { subject } = await addIdentity(host.knex, user.id)
      const response = await signInWhile(
        () => host.knex('auth_users').where({ id: user.id }).update({ is_active: false }),
        newPerson({ sub: subject }),
      )
      expect(refusal(response)).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
      expect(await liveSessions(user.id)).toEqual([])
      expect((await host.auth.service.listIdentities(user.id))[0]?.lastLoginAt).toEqual(someTime)
    })

    test('the link moves to another account: that one is logged in, never the first', async () => {
      const host = await start()
      const [first, second] = [await addUser(host.knex), await addUser(host.knex)]
      const { subject } = await addIdentity(host.knex, first.id)
      const response = await signInWhile(
        () => host.knex('auth_identities').where({ subject }).update({ user_id: second.id }),
        newPerson({ sub: subject }),
      )
      expect(response.body.user_id).toBe(second.id)
      expect(await liveSessions(first.id)).toEqual([])
    })

    test('C15: somebody signs up with the email: 409, and no second account', async () => {
      const host = await start()
      const person = newPerson()
      const response = await signInWhile(() => addUser(host.knex, { email: person.email }), person)
      expect(refusal(response)).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
      expect((await userByEmail(host.knex, person.email))?.name).toBe('There Before')
      expect(await host.knex('auth_identities').where({ subject: person.sub })).toEqual([])
    })

    test.each<Moment>(['after the looks', 'between the looks'])(
      'C14: the same identity is created elsewhere %s: that account is logged in',
      async (moment) => {
        const host = await start()
        const person = newPerson()
        let elsewhere = ''
        const create = async () => {
          elsewhere = (await signIn(host, host.browser(), { profile: person })).body.user_id
        }
        const response = await signInWhile(create, person, { moment })
        expect(response.status, response.text).toBe(200)
        expect(response.body.user_id).toBe(elsewhere)
      },
    )

    test.each<[Moment, Date | null]>([
      ['after the looks', someTime],
      ['after the looks', null],
      ['between the looks', someTime],
      ['between the looks', null],
    ])('C16: the same identity is linked elsewhere %s: its account (proven %s) is logged in', async (moment, emailVerifiedAt) => {
      const host = await start({ settings: linking })
      const user = await addUser(host.knex, { emailVerifiedAt })
      const person = newPerson({ email: user.email })
      const linkElsewhere = () => signIn(host, host.browser(), { profile: person })
      const response = await signInWhile(linkElsewhere, person, { settings: linking, moment })
      expect(response.status, response.text).toBe(200)
      expect(response.body.user_id).toBe(user.id)
      expect(await liveSessions(user.id)).toHaveLength(2)
      expect(await host.auth.service.listIdentities(user.id)).toHaveLength(1)
    })

    test('an account to be linked moves to another address: it is not linked', async () => {
      const host = await start()
      const user = await addUser(host.knex)
      const person = newPerson({ email: user.email })
      const response = await signInWhile(
        () =>
          host
            .knex('auth_users')
            .where({ id: user.id })
            .update({ email: `moved-${user.email}` }),
        person,
        { settings: linking },
      )
      expect(response.status).toBe(200)
      expect(response.body.user_id).not.toBe(user.id)
      expect(await host.auth.service.listIdentities(user.id)).toEqual([])
    })

    test.each([
      { title: 'proves its address: it keeps its password', before: null, after: someTime, keeps: true },
      { title: 'turns out unproven: it does not', before: someTime, after: null, keeps: false },
    ])('an account to be linked $title', async ({ before, after, keeps }) => {
      const host = await start()
      const user = await addUser(host.knex, { emailVerifiedAt: before })
      const change = () => createKnexStore({ knex: host.knex }).users.update(user.id, { emailVerifiedAt: after })
      const response = await signInWhile(change, newPerson({ email: user.email }), { settings: linking })
      expect(response.body.user_id).toBe(user.id)
      expect((await userById(host.knex, user.id)).hashedPassword === user.hashedPassword).toBe(keeps)
    })

    test('an account to be linked is deactivated: 401, and it keeps what it has', async () => {
      const host = await start()
      const user = await addUser(host.knex, { emailVerifiedAt: null })
      const response = await signInWhile(
        () => host.knex('auth_users').where({ id: user.id }).update({ is_active: false }),
        newPerson({ email: user.email }),
        { settings: linking },
      )
      expect(refusal(response)).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
      expect((await userById(host.knex, user.id)).hashedPassword).toBe(user.hashedPassword)
    })

    test('somebody who changes it every time is not waited for: 503 with Retry-After, no account', async () => {
      const store = createKnexStore({ knex: opened().knex })
      const insert = () => Promise.reject(new DuplicateRecordError())
      const contested = (inner: AuthStore): AuthStore => ({
        ...inner,
        users: { ...inner.users, insert },
        transaction: (work) => inner.transaction((inside) => work(contested(inside))),
      })
      const host = await start({ options: { store: contested(store) } })
      const person = newPerson()
      const response = await signIn(host, host.browser(), { profile: person })
      expect(refusal(response)).toEqual([503, 'SERVICE_UNAVAILABLE'])
      expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(await userByEmail(host.knex, person.email)).toBeNull()
    })
  })

  test('C17: unlink racing login: the login is over before the unlink, or it is refused; after the 204 nobody gets in', async () => {
    const host = await start({ options: { throttle: { routes: false } } })
    for (let round = 0; round < 15; round += 1) {
      const person = newPerson()
      const owner = await signIn(host, host.browser(), { profile: person })
      const attempts = [await begin(host, { profile: person }), await begin(host, { profile: person })]
      const unlink = host.browser().post('/auth/oauth/accounts/unlink').set(bearer(owner)).send({ provider: 'corp' })
      const late: Promise<HttpResponse>[] = []
      const unlinked = unlink.then((response) => {
        const [, attempt] = attempts
        if (attempt) late.push(callBack(host, attempt.query, attempt))
        return response
      })
      const [racing, removed] = await Promise.all([callBack(host, attempts[0]?.query ?? '', attempts[0]), unlinked])
      const [afterwards] = await Promise.all(late)

      expect(removed.status).toBe(204)
      expect([200, 409]).toContain(racing.status)
      expect(afterwards?.body.code).toBe('OAUTH_EMAIL_TAKEN')
      // The unlink revokes the session of the racing login too, and keeps the session of its own request (25.3.2).
      expect(await liveSessions(owner.body.user_id)).toHaveLength(1)
      expect(await host.auth.service.listIdentities(owner.body.user_id)).toEqual([])
    }
  })

  test('C20: deactivation racing a login: once both are over no session of the account is alive', async () => {
    const host = await start({ options: { throttle: { routes: false } } })
    const store = createKnexStore({ knex: host.knex })
    for (let round = 0; round < 15; round += 1) {
      const user = await addUser(host.knex)
      const { subject } = await addIdentity(host.knex, user.id)
      const attempt = await begin(host, { profile: newPerson({ sub: subject }) })
      const deactivate = store.transaction(async (inside) => {
        await inside.users.update(user.id, { isActive: false })
        await inside.sessions?.revokeForUser(user.id, host.clock.now())
      })
      const [response] = await Promise.all([callBack(host, attempt.query, attempt), deactivate])
      expect([200, 401]).toContain(response.status)
      expect(await liveSessions(user.id)).toEqual([])
    }
  })

  describe('two people in flight', () => {
    /** Holds the first call to the token endpoint until `release`. */
    function holdingFirstExchange(): { httpClient: HttpClient; held: Promise<void>; release: () => void } {
      const inner = createHttpClient()
      const [held, holds] = signal()
      const [released, release] = signal()
      let isFirst = true
      const httpClient: HttpClient = async (url, request) => {
        if (isFirst && url.endsWith('/token')) {
          isFirst = false
          holds()
          await released
        }
        return inner(url, request)
      }
      return { httpClient, held, release }
    }

    test.each([
      ['one provider', 'corp'],
      ['two providers', 'acme'],
    ])('C18: a slow first exchange and a fast second at %s never cross: each gets their own account', async (_case, otherKey) => {
      const { httpClient, held, release } = holdingFirstExchange()
      const host = await start({ providers: { corp: { httpClient }, acme: { httpClient } } })
      const [slow, fast] = [newPerson(), newPerson()]
      const slowAttempt = await begin(host, { profile: slow })
      const fastAttempt = await begin(host, { key: otherKey, profile: fast })

      const slowCallback = callBack(host, slowAttempt.query, slowAttempt)
      // supertest sends when it is awaited.
      const slowResponse = slowCallback.then((response) => response)
      await held
      const fastResponse = await callBack(host, fastAttempt.query, { key: otherKey, cookie: fastAttempt.cookie })
      release()

      expect(fastResponse.status, fastResponse.text).toBe(200)
      expect((await userById(host.knex, fastResponse.body.user_id)).email).toBe(fast.email)
      const finished = await slowResponse
      expect((await userById(host.knex, finished.body.user_id)).email).toBe(slow.email)
    })

    test("C18: one person's refusal is not the other's", async () => {
      const { httpClient, held, release } = holdingFirstExchange()
      const host = await start({ providers: { corp: { httpClient } } })
      const [good, bad] = [newPerson(), newPerson()]
      const goodAttempt = await begin(host, { profile: good })
      const badAttempt = await begin(host, { profile: bad })
      const goodResponse = callBack(host, goodAttempt.query, goodAttempt).then((response) => response)
      await held
      const badResponse = await callBack(host, { ...badAttempt.query, code: 'unknown' }, badAttempt)
      release()
      expect(badResponse.status).toBe(502)
      expect((await userById(host.knex, (await goodResponse).body.user_id)).email).toBe(good.email)
    })

    test('C18: thirty people at once each get their own account', async () => {
      const host = await start()
      const people = Array.from({ length: 30 }, () => newPerson())
      const responses = await Promise.all(people.map((profile) => signIn(host, host.browser(), { profile })))
      const emails = await Promise.all(responses.map(async ({ body }) => (await userById(host.knex, body.user_id)).email))
      expect(emails).toEqual(people.map(({ email }) => email))
    })

    test('C18: a double click while the exchange is slow: one exchange, the second is 401', async () => {
      const { httpClient, held, release } = holdingFirstExchange()
      const host = await start({ providers: { corp: { httpClient } } })
      const attempt = await begin(host, { profile: newPerson() })
      const first = callBack(host, attempt.query, attempt).then((response) => response)
      await held
      const second = await callBack(host, attempt.query, attempt)
      release()
      expect([second.status, second.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      expect((await first).status).toBe(200)
      expect(host.provider.requestsTo('token')).toHaveLength(1)
    })
  })
})

function readDuplicate(error: unknown): string {
  if (error instanceof DuplicateRecordError) return 'refused'
  throw error
}

function signal(): [Promise<void>, () => void] {
  let resolve = (): void => undefined
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return [promise, resolve]
}
