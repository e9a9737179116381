import { describe, expect, test } from 'vitest'
import { type HttpResponse, onDatabase } from '../social/redirect-steps'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { recordQueries } from '../support/record-queries'

const password = 'a quiet harbour in winter'
const newPassword = 'another quiet harbour'

/**
 * What each operation costs: statements on the wire, BEGIN and COMMIT included. The contract asks for at most 5 at a login and
 * 2 at its refusal on PostgreSQL; the rest is what was measured, so that nobody adds one without noticing. MariaDB has
 * SET TRANSACTION before BEGIN, no write that returns rows, and a query that looks for sessions beyond the limit. SQLite, which is in
 * this process, sends two statements more at the end of a unit, and two before its first statement, unless that is a guarded change, as
 * at a login.
 */
const costs = {
  sqlite: { login: 7, rehashingLogin: 7, refusal: 1, signup: 9, activation: 14, reset: 15, change: 15 },
  postgres: { login: 5, rehashingLogin: 5, refusal: 1, signup: 5, activation: 10, reset: 11, change: 11 },
  mariadb: { login: 8, rehashingLogin: 8, refusal: 1, signup: 6, activation: 13, reset: 14, change: 12 },
}

describe.each(await databases())('on $name', (database) => {
  // One connection for everything: whoever holds it while waiting for something else would hang here.
  const { start } = onDatabase(database, { pool: { min: 1, max: 1 } })
  const cost = costs[database.name]
  let people = 0

  async function host(): Promise<Mounted> {
    return start({ options: { throttle: { login: false, links: false, signup: false, routes: false } } })
  }

  async function statementsOf(mounted: Mounted, call: () => PromiseLike<HttpResponse>, status: number): Promise<string[]> {
    const statements = recordQueries(mounted.knex)
    const response = await call()
    expect(response.status, response.text).toBe(status)
    return statements.stop()
  }

  const post = (mounted: Mounted, path: string, body: object) => mounted.browser().post(`/auth${path}`).send(body)
  const newEmail = () => `person-${people++}@example.test`

  async function member(mounted: Mounted): Promise<{ email: string; accessToken: string }> {
    const email = newEmail()
    const { body } = await post(mounted, '/signup', { email, password })
    const activated = await post(mounted, '/activate', { token: tokenIn(body.activation_url) })
    return { email, accessToken: activated.body.access_token }
  }

  test('a login costs at most 5 round trips on PostgreSQL, also when it stores a better hash; a refusal at most 2', async () => {
    const mounted = await host()
    const { email } = await member(mounted)
    const login = await statementsOf(mounted, () => post(mounted, '/login', { email, password }), 200)
    expect(login, brief(login)).toHaveLength(cost.login)
    const wrong = await statementsOf(mounted, () => post(mounted, '/login', { email, password: newPassword }), 401)
    const unknown = await statementsOf(mounted, () => post(mounted, '/login', { email: newEmail(), password }), 401)
    expect(unknown).toEqual(wrong)
    expect(wrong, brief(wrong)).toHaveLength(cost.refusal)

    mounted.hasher.needsRehash = () => true
    const rehashing = await statementsOf(mounted, () => post(mounted, '/login', { email, password }), 200)
    expect(rehashing, brief(rehashing)).toHaveLength(cost.rehashingLogin)
  })

  test('signup, activation, reset and password change cost what was measured', async () => {
    const mounted = await host()
    const { email } = await member(mounted)
    const fresh = newEmail()
    let signedUp: HttpResponse | undefined
    const signup = await statementsOf(mounted, async () => (signedUp = await post(mounted, '/signup', { email: fresh, password })), 201)
    const taken = await statementsOf(mounted, () => post(mounted, '/signup', { email, password }), 201)
    const token = tokenIn(signedUp?.body.activation_url)
    const activation = await statementsOf(mounted, () => post(mounted, '/activate', { token }), 200)
    const request = await post(mounted, '/password-reset/request', { email })
    let signedIn: HttpResponse | undefined
    const body = { token: tokenIn(request.body.reset_url), new_password: newPassword }
    const reset = await statementsOf(mounted, async () => (signedIn = await post(mounted, '/password-reset/confirm', body)), 200)
    const change = await statementsOf(
      mounted,
      () =>
        post(mounted, '/password-change', { current_password: newPassword, new_password: password }).set(
          'Authorization',
          `Bearer ${signedIn?.body.access_token}`,
        ),
      204,
    )

    const measured = { signup: signup.length, activation: activation.length, reset: reset.length, change: change.length }
    expect(measured, [signup, activation, reset, change].map((list) => brief(list)).join('\n\n')).toMatchObject({
      signup: cost.signup,
      activation: cost.activation,
      reset: cost.reset,
      change: cost.change,
    })
    expect(taken[0]).toBe(signup[0])
  })

  test('C24: no connection is held while a password is hashed or looked at', async () => {
    const seen: string[] = []
    const inner = fastHasher()
    const mounted: Mounted = await start({
      options: {
        passwordHasher: {
          ...inner,
          hash: (text) => meanwhile('hash', () => inner.hash(text)),
          verify: (hash, text) => meanwhile('verify', () => inner.verify(hash, text)),
          needsRehash: () => true,
        },
      },
    })
    async function meanwhile<T>(what: string, work: () => Promise<T>): Promise<T> {
      expect(mounted.knex.client.pool.numUsed()).toBe(0)
      await mounted.knex.raw('select 1')
      seen.push(what)
      return work()
    }

    const { email } = await member(mounted)
    expect((await post(mounted, '/login', { email, password })).status).toBe(200)
    expect((await post(mounted, '/login', { email: newEmail(), password })).status).toBe(401)
    const request = await post(mounted, '/password-reset/request', { email })
    const body = { token: tokenIn(request.body.reset_url), new_password: newPassword }
    const reset = await post(mounted, '/password-reset/confirm', body)
    expect(reset.status).toBe(200)
    const change = { current_password: newPassword, new_password: password }
    expect((await post(mounted, '/password-change', change).set('Authorization', `Bearer ${reset.body.access_token}`)).status).toBe(204)
    // Sign-up, which always verifies one hash; login with a better hash; the dummy hash and its verification; reset; change.
    expect(seen).toEqual(['hash', 'verify', 'verify', 'hash', 'hash', 'verify', 'hash', 'verify', 'hash'])
  })

  test('C24: ten people at once get through a pool of one', async () => {
    const mounted = await host()
    const emails = await Promise.all(Array.from({ length: 10 }, async () => (await member(mounted)).email))
    const logins = await Promise.all(emails.map((email) => post(mounted, '/login', { email, password })))
    expect(logins.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(mounted.knex.client.pool.numUsed()).toBe(0)
  })
})

function brief(statements: string[]): string {
  return statements.map((sql) => sql.slice(0, 60)).join('\n')
}

function tokenIn(url: unknown): string {
  return String(url).split('/').at(-1) ?? ''
}
