import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthRouter, createAuthTables, createKnexStore, type KnexStore } from '../../src'
import type { LinkPurpose } from '../../src/accounts/email-links/email-link'
import { addUser } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { type Answer, agingHasher, digestOf, type HttpAnswer, type HttpRequest, noBudgets, raceSettings, type Task } from './races-child'

const oldPassword = 'a quiet harbour in winter'
const newPassword = 'a loud harbour in summer'

for (const database of await databases()) {
  describe(`local accounts from two processes on one ${database.name} database`, { timeout: raceTimeout(60_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    /** Looks at what the race left behind. */
    let service: AuthService
    let pair: ProcessPair<Task, Answer>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      service = createAuthRouter({
        settings: raceSettings,
        store,
        environment: 'test',
        passwordHasher: agingHasher(),
        throttle: noBudgets,
        logger: logTap(),
      }).service
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    async function raceOf(one: HttpRequest[], other: HttpRequest[], host: 'usual' | 'autoActivate' = 'usual'): Promise<HttpAnswer[]> {
      const reports = await pair.race({ verb: 'post', requests: one, host }, { verb: 'post', requests: other, host })
      return reports.flatMap(answersOf)
    }

    async function link(userId: string, purpose: LinkPurpose): Promise<string> {
      const token = randomBytes(32).toString('base64url')
      const createdAt = new Date()
      const expiresAt = new Date(createdAt.getTime() + 3_600_000)
      await store.userTokens.insert({ userId, tokenHash: sha256(token), purpose, payload: null, expiresAt, usedAt: null, createdAt })
      return token
    }

    const member = () => addUser(opened.knex, { hashedPassword: `old$${digestOf(oldPassword)}` })
    const refresh = (answer: HttpAnswer) => outcome(service.refresh(String(answer.body['refresh_token'])))
    const liveSessions = (userId: string) => count('auth_sessions', { user_id: userId, revoked_at: null })

    async function expectPassword(userId: string, password: string): Promise<void> {
      expect((await store.users.find(userId))?.hashedPassword).toBe(`new$${digestOf(password)}`)
    }

    async function count(table: string, where: object): Promise<number> {
      return (await opened.knex(table).where(where)).length
    }

    test('C04: of one activation link clicked four times, one is in, the account is activated once, and one event says so', async () => {
      await repeat(async () => {
        const { id } = await addUser(opened.knex, { isActive: false, activatedAt: null, emailVerifiedAt: null })
        const request = { path: '/activate', body: { token: await link(id, 'ACTIVATION') } }
        const task: Task = { verb: 'post', requests: [request, request] }
        const reports = await pair.race(task, task)

        const answers = reports.flatMap(answersOf)
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
        expect(new Set(answers.map(({ body }) => body['code']))).toEqual(new Set([undefined, 'INVALID_TOKEN']))
        expect(reports.flatMap(eventsOf)).toEqual(['activation'])
        expect((await store.users.find(id))?.isActive).toBe(true)
        expect(await liveSessions(id)).toBe(1)
      })
    })

    test('C05: of one reset link redeemed with four passwords, one password wins, and only the winner’s pair lives', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const before = await service.logIn({ email, password: oldPassword })
        const token = await link(id, 'PASSWORD_RESET')
        const passwords = ['one', 'two', 'three', 'four'].map((word) => `harbour number ${word}`)
        const requests = passwords.map((password) => ({ path: '/password-reset/confirm', body: { token, new_password: password } }))
        const answers = await raceOf(requests.slice(0, 2), requests.slice(2))

        expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
        const winner = answers.findIndex(({ status }) => status === 200)
        expect(await liveSessions(id)).toBe(1)
        expect(await outcome(service.refresh(before.kind === 'session' ? before.refreshToken : ''))).toBe('INVALID_TOKEN')
        expect(await refresh(answers[winner] ?? nobody)).toBe('in')
        await expectPassword(id, String(passwords[winner]))
      })
    })

    test('C06: a reset against a login with the old password: the login loses, or its session is ended by the reset', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const token = await link(id, 'PASSWORD_RESET')
        const [reset, login] = await raceOf(
          [{ path: '/password-reset/confirm', body: { token, new_password: newPassword } }],
          [{ path: '/login', body: { email, password: oldPassword } }],
        )

        expect(reset?.status).toBe(200)
        expect([200, 401]).toContain(login?.status)
        expect(await refresh(login ?? nobody)).toBe('INVALID_TOKEN')
        expect(await liveSessions(id)).toBe(1)
        await expectPassword(id, newPassword)
      })
    })

    test('C07: two reset requests for one account leave one link alive', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const request = { path: '/password-reset/request', body: { email } }
        const answers = await raceOf([request], [request])

        expect(answers.map(({ status }) => status)).toEqual([202, 202])
        const live = await opened.knex('auth_user_tokens').where({ user_id: id, used_at: null })
        const tokens = answers.map(({ body }) => String(body['reset_url']).split('/').at(-1) ?? '')
        const dead = tokens.filter((token) => sha256(token) !== live[0]?.token_hash)
        expect([live.length, dead.length]).toEqual([1, 1])
        expect(await outcome(service.resetPassword({ token: String(dead[0]), newPassword }))).toBe('INVALID_TOKEN')
      })
    })

    test('C11: of twelve wrong passwords at once, over both processes five are looked at, and the rest are 429', async () => {
      let judged = 0
      await repeat(async (round) => {
        const { email } = await member()
        const guesses = Array.from({ length: 12 }, (_, index): HttpRequest => {
          const body = { email: index % 2 ? email : email.toUpperCase(), password: `harbour number ${index}` }
          return { path: '/login', body, from: `2001:db8:${round}:${index}::1` } // a client that never failed before
        })
        const taskOf = (requests: HttpRequest[]): Task => ({ verb: 'post', requests, host: 'counting' })
        const reports = (await pair.race(taskOf(guesses.slice(0, 6)), taskOf(guesses.slice(6)))).map(answerOf)
        if (reports.some(({ countedHere }) => countedHere)) return

        judged += 1
        const codes = reports.flatMap(({ answers }) => answers.map(({ status, body }) => `${status} ${body['code']}`))
        expect(codes.sort()).toEqual([...Array(5).fill('401 UNAUTHORIZED'), ...Array(7).fill('429 LOGIN_THROTTLED')])
        expect(reports.reduce((total, { verified }) => total + verified, 0)).toBe(5)
      }, 10)
      expect(judged).toBeGreaterThan(3)
    })

    test('C13: signups with one address in four spellings make one account, and the losers cannot tell', async () => {
      await repeat(async () => {
        const { email, spellings } = newAddress()
        const requests = spellings.map((spelling) => ({ path: '/signup', body: { email: spelling, password: oldPassword } }))
        const answers = await raceOf(requests.slice(0, 2), requests.slice(2))

        expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
        const shape = {
          user_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          activation_required: true,
          access_token: null,
          refresh_token: null,
        }
        for (const { body } of answers) expect(body).toMatchObject(shape)
        expect(new Set(answers.map(({ body }) => body['user_id'])).size).toBe(4)
        const [user, ...more] = await opened.knex('auth_users').whereRaw('lower(email) = ?', [email])
        expect(more).toEqual([])
        expect(answers.filter(({ body }) => body['user_id'] === user.id).map(({ body }) => typeof body['activation_url'])).toEqual([
          'string',
        ])
        expect(await count('auth_user_tokens', { user_id: user.id, purpose: 'ACTIVATION', used_at: null })).toBe(4)
        expect(await count('auth_user_tokens', { user_id: user.id, purpose: 'CONTESTED' })).toBe(0) // the password is equal
      })
    })

    test('C13: where accounts are born active, the losers are told 409 EMAIL_TAKEN', async () => {
      await repeat(async () => {
        const { email, spellings } = newAddress()
        const requests = spellings.map((spelling) => ({ path: '/signup', body: { email: spelling, password: oldPassword } }))
        const answers = await raceOf(requests.slice(0, 2), requests.slice(2), 'autoActivate')

        expect(answers.map(({ status, body }) => body['code'] ?? status).sort()).toEqual([201, 'EMAIL_TAKEN', 'EMAIL_TAKEN', 'EMAIL_TAKEN'])
        expect(await count('auth_users', { email })).toBe(1)
      }, 15)
    })

    test('C20: a login against deactivate: once both are over no session is alive, and nobody gets in', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const credentials = { email, password: oldPassword }
        const [login, deactivate] = await pair.race(
          { verb: 'post', requests: [{ path: '/login', body: credentials }] },
          { verb: 'deactivate', userId: id },
        )

        expect(deactivate).toMatchObject({ answers: [], events: [] })
        const [answer = nobody] = answersOf(login)
        expect([200, 401]).toContain(answer.status)
        expect(await liveSessions(id)).toBe(0)
        expect(await refresh(answer)).toBe('INVALID_TOKEN')
      })
    })

    test('C22: a login that hashes anew against a password change: the old password is never restored', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const [login, change] = await pair.race(
          { verb: 'post', requests: [{ path: '/login', body: { email, password: oldPassword } }] },
          { verb: 'changePassword', userId: id, currentPassword: oldPassword, newPassword },
        )

        expect(change).toMatchObject({ answers: [], events: [] })
        const [answer = nobody] = answersOf(login)
        expect([200, 401]).toContain(answer.status)
        await expectPassword(id, newPassword)
        expect(await refresh(answer)).toBe('INVALID_TOKEN')
      })
    })
  })
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const nobody: HttpAnswer = { status: 0, body: {} }

function answerOf(report: Report<Answer>): Answer {
  if ('error' in report) throw new Error(`the other process: ${report.error}`)
  return report
}

const answersOf = (report: Report<Answer>): HttpAnswer[] => answerOf(report).answers

function eventsOf(report: Report<Answer>): string[] {
  return 'error' in report ? [report.error] : report.events
}

async function outcome(operation: Promise<unknown>): Promise<string> {
  return operation.then(
    () => 'in',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  )
}

function newAddress(): { email: string; spellings: string[] } {
  const name = randomUUID().slice(0, 8)
  const email = `ana-${name}@example.test`
  return { email, spellings: [email, `Ana-${name}@example.test`, `ANA-${name}@EXAMPLE.TEST`, `ana-${name}@Example.test`] }
}
