import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { type Answer, agingHasher, type HttpAnswer, noBudgets, raceSettings, type Task } from '../local/races-child'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, repeat, startPair } from '../support/two-processes'

const [onePassword, otherPassword] = ['a quiet harbour in winter', 'nine green bicycles uphill']

describe.each(await databases())(
  'C13: two sign-ups with one address, from two processes on one $name database',
  { timeout: raceTimeout(60_000) },
  (database) => {
    let opened: OpenDatabase
    let pair: ProcessPair<Task, Answer>
    /** Redeem links after the race: by the link alone, or only together with a token of the sign-up. */
    let lenient: AuthService
    let strict: AuthService

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      const serviceOf = (activationBinding: 'lenient' | 'strict') =>
        createAuthRouter({
          settings: { ...raceSettings, activationBinding },
          store: createKnexStore({ knex: opened.knex }),
          environment: 'test',
          passwordHasher: agingHasher(),
          throttle: noBudgets,
          logger: logTap(),
        }).service
      ;[lenient, strict] = [serviceOf('lenient'), serviceOf('strict')]
      pair = await startPair(join(import.meta.dirname, '../local/races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const signup = (email: string, password: string): Task => ({
      verb: 'post',
      requests: [{ path: '/signup', body: { email, password } }],
    })

    async function race(email: string, one: string, other: string): Promise<HttpAnswer[]> {
      const reports = await pair.race(signup(email, one), signup(email, other))
      const answers = reports.flatMap((report) => ('error' in report ? [{ status: 0, body: report }] : report.answers))
      expect(answers.map(({ status }) => status)).toEqual([201, 201])
      expect(new Set(answers.flatMap(({ body }) => [body['user_id'], body['signup_token']])).size).toBe(4)
      return answers
    }

    async function open(email: string, purpose: string): Promise<number> {
      const [user, ...more] = await opened.knex('auth_users').where({ email })
      expect(more).toEqual([])
      return (await opened.knex('auth_user_tokens').where({ user_id: user.id, purpose, used_at: null })).length
    }

    const linkOf = ({ body }: HttpAnswer) => String(body['activation_url']).split('/').at(-1) ?? ''
    const logsIn = (email: string, password: string) =>
      lenient.logIn({ email, password }).then(
        () => true,
        () => false,
      )

    test('with equal passwords contest nothing: both links stay, and each works with the token of the other sign-up (25.4.6)', async () => {
      await repeat(async (round) => {
        const email = newAddress()
        const answers = await race(email, onePassword, onePassword)

        expect([await open(email, 'CONTESTED'), await open(email, 'ACTIVATION')]).toEqual([0, 2])
        const [link, token] = round % 2 === 0 ? [0, 1] : [1, 0]
        const signupToken = String(answers[token]?.body['signup_token'])
        const result = await strict.activate(linkOf(answers[link] as HttpAnswer), { signupToken })
        expect([result.kind, 'passwordRequired' in result]).toEqual(['session', false])
        expect(await logsIn(email, onePassword)).toBe(true)
      })
    })

    test('with different passwords contest the account: a link alone is a take-over, and neither password wins (25.4.6)', async () => {
      await repeat(async () => {
        const email = newAddress()
        await expectContested(email, await race(email, onePassword, otherPassword))
      })
    })

    test('with equal and with another password, for an account that waits already, contest it too (25.4.6)', async () => {
      await repeat(async () => {
        const email = newAddress()
        await pair.ask(signup(email, onePassword))
        await expectContested(email, await race(email, onePassword, otherPassword))
      })
    })

    async function expectContested(email: string, answers: HttpAnswer[]): Promise<void> {
      expect([await open(email, 'CONTESTED'), await open(email, 'ACTIVATION')]).toEqual([1, 1])
      const results = []
      for (const answer of answers) results.push(await lenient.activate(linkOf(answer)).catch(({ code }) => code))
      expect(results).toContain('INVALID_TOKEN') // of the sign-up that the other one replaced
      expect(results).toContainEqual(expect.objectContaining({ kind: 'session', passwordRequired: true }))
      expect([await logsIn(email, onePassword), await logsIn(email, otherPassword)]).toEqual([false, false])
    }
  },
)

function newAddress(): string {
  return `ana-${randomUUID().slice(0, 8)}@example.test`
}
