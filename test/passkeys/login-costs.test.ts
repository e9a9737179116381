import { webcrypto } from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { post } from '../local/people'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { handMade } from './hand-made'
import { codeOf, loginOptions, onPasskeys, type PasskeyOwner, passkeyOwner, rejected } from './people'

/** Statements on the wire, BEGIN and COMMIT included, as in test/local/round-trips.test.ts. The contract asks for at most 5 on PostgreSQL. */
const costs = {
  sqlite: { login: 12, refusal: 1 },
  postgres: { login: 5, refusal: 1 },
  mariadb: { login: 11, refusal: 1 },
}

describe.each(await databases())('what a login by passkey costs, and tells, on $name', (database) => {
  const { start: begin } = onPasskeys(database)
  const start = () => begin({ options: { throttle: { login: false, routes: false, mail: false } } })
  const cost = costs[database.name]
  afterEach(() => vi.restoreAllMocks())

  type Host = Awaited<ReturnType<typeof start>>

  async function answerOf(host: Host, { authenticator }: Pick<PasskeyOwner, 'authenticator'>, lies = {}) {
    const options = await loginOptions(host)
    return { credential: authenticator.get(options, lies), challenge_token: options.challenge_token }
  }

  test('a login costs at most 5 round trips on PostgreSQL, a refusal 1; options cost none', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const statementsOf = async (body: object, status: number) => {
      const statements = recordQueries(host.knex)
      const response = await post(host, '/passkeys/login', body)
      expect(response.status, response.text).toBe(status)
      return statements.stop()
    }
    const login = await statementsOf(await answerOf(host, owner), 200)
    expect(login, login.join('\n')).toHaveLength(cost.login)
    const refusal = await statementsOf(await answerOf(host, owner, { isUserVerified: false }), 401)
    expect(refusal, refusal.join('\n')).toHaveLength(cost.refusal)
    const asked = recordQueries(host.knex)
    await loginOptions(host)
    expect(asked.stop()).toEqual([])
  })

  test('a passkey that nobody has, one of an inactive account and a wrong signature get one answer, for the same work', async () => {
    const host = await start()
    const [owner, inactive] = [await passkeyOwner(host), await passkeyOwner(host)]
    await host.knex('auth_users').where({ id: inactive.userId }).update({ is_active: false })
    const unknown = async () => {
      const [options, hand] = [await loginOptions(host), handMade()]
      hand.create({ ...options, user: { id: Buffer.alloc(32).toString('base64url') } })
      return { credential: hand.get(options), challenge_token: options.challenge_token }
    }
    const wrong = Buffer.from('30060201010201010a'.slice(0, 16), 'hex').toString('base64url')
    const verify = vi.spyOn(webcrypto.subtle, 'verify')
    const seen = async (body: object) => {
      const statements = recordQueries(host.knex)
      verify.mockClear()
      const { status, body: answer, headers } = await post(host, '/passkeys/login', body)
      const { date: _, 'x-request-id': __, ...others } = headers
      return { status, answer, others, statements: statements.stop(), signatures: verify.mock.calls.length }
    }
    const first = await seen(await unknown())
    expect([first.status, first.answer.code, first.signatures]).toEqual([...rejected, 1])
    expect(await seen(await answerOf(host, inactive))).toEqual(first)
    expect(await seen(await answerOf(host, owner, { signature: wrong }))).toEqual(first)
  })

  test('the options are of one form, whoever asks, and however many passkeys there are', async () => {
    const host = await start()
    const shapeOf = ({ challenge, challenge_token: token, ...rest }: { challenge: string; challenge_token: string }) => [
      challenge.length,
      token.length,
      rest,
    ]
    const before = await loginOptions(host)
    const owner = await passkeyOwner(host)
    const after = await loginOptions(host)
    expect(shapeOf(after)).toEqual(shapeOf(before))
    expect(shapeOf(after).at(-1)).toEqual({ timeout: 900_000, rpId: 'app.example.test', userVerification: 'required' })
    const named = await post(host, '/passkeys/login/options', { email: owner.email }, { Cookie: 'access_token=x' })
    expect([named.status, shapeOf(named.body)]).toEqual([200, shapeOf(before)])
    expect(codeOf(await post(host, '/passkeys/login', {}))).toEqual([422, 'VALIDATION_ERROR'])
  })
})
