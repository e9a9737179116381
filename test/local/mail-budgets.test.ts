import { describe, expect, test } from 'vitest'
import type { AuthMail } from '../../src'
import { linkTemplates, type Mailbox, mailbox, tokenOf } from '../support/mailbox'
import { client, inTurn, type ManyClients, manyClients, password } from './many-clients'

const start = manyClients()
const ana = 'ana@example.test'
const request = { reset: '/auth/password-reset/request', activation: '/auth/activation/request' }

async function host(throttle: object = {}): Promise<ManyClients & { inbox: Mailbox }> {
  const inbox = mailbox()
  const settings = { ...linkTemplates, autoActivate: false }
  const started = await start({ settings, options: { mailer: inbox, throttle: { links: false, signup: false, ...throttle } } })
  return { ...started, inbox }
}

/** An active account, whose activation mail was the first link. */
async function withAna(throttle: object = {}) {
  const started = await host(throttle)
  await started.post('/auth/signup', { email: ana, password })
  const { body } = await started.post('/auth/activate', { token: tokenOf(await started.inbox.next()) })
  return { ...started, token: String(body.access_token) }
}

/** Mails travel after the answer; whatever was to be sent has been by then. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50))
}

async function ask(on: ManyClients, path: string, from = client(0)): Promise<void> {
  expect((await on.post(path, { email: ana }, from)).status).toBe(202)
  await settled()
}

const linksIn = (mails: readonly AuthMail[]) => mails.filter(({ kind }) => kind !== 'notice').length

describe('mails to one address', () => {
  test('issue 26: five signups an hour with the address of somebody else silence no notice and no reset mail', async () => {
    const on = await withAna()
    for (let hour = 0; hour < 3; hour++) {
      const answers = await inTurn(5, (index) => on.post('/auth/signup', { email: ana, password }, client(index)))
      expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(201))
      await settled()
      on.clock.advance(3_600)
    }
    const { body } = await on.logIn(ana, password, client(30))
    const change = { current_password: password, new_password: 'another quiet harbour' }
    const before = on.inbox.mails.length
    const changed = await on.post('/auth/password-change', change, client(30), { Authorization: `Bearer ${body.access_token}` })
    expect(changed.status).toBe(204)
    await ask(on, request.reset)
    expect(on.inbox.mails.slice(before).map(({ subject }) => subject)).toEqual(['Your password was changed', 'Choose a new password'])
    const taken = on.inbox.mails.filter(({ subject }) => subject === 'You already have an account')
    expect(taken, 'one a day').toHaveLength(1)
  })

  test('links: five an hour and twenty a day; past them a request mails nothing, makes no row and ends none', async () => {
    const on = await withAna()
    on.clock.advance(3_600)
    for (let hour = 0; hour < 4; hour++) {
      await inTurn(5, () => ask(on, request.reset))
      on.clock.advance(3_600)
    }
    // One activation and nineteen resets: the day is spent, but the last link is over, so one more goes out.
    expect(linksIn(on.inbox.mails)).toBe(20)
    await ask(on, request.reset)
    expect(linksIn(on.inbox.mails)).toBe(21)

    const rows = await on.knex('auth_user_tokens').orderBy('id')
    await inTurn(3, () => ask(on, request.reset))
    expect(linksIn(on.inbox.mails)).toBe(21)
    expect(await on.knex('auth_user_tokens').orderBy('id')).toEqual(rows)
    const reset = { token: tokenOf(on.inbox.mails.at(-1) as AuthMail), new_password: 'another quiet harbour' }
    expect((await on.post('/auth/password-reset/confirm', reset)).status).toBe(200)
  }, 60_000)

  test('X14: whoever asks twenty-one times closes recovery for an hour at most, and never while a link of that kind is missing', async () => {
    const on = await withAna()
    await inTurn(30, (index) => ask(on, request.reset, client(index)))
    expect(linksIn(on.inbox.mails), 'the last of five still works').toBe(5)
    for (let hour = 0; hour < 30; hour++) {
      on.clock.advance(3_600)
      const before = linksIn(on.inbox.mails)
      await inTurn(6, (index) => ask(on, request.reset, client(index)))
      expect(linksIn(on.inbox.mails) - before, `hour ${hour}`).toBeGreaterThanOrEqual(1)
    }
    // Another kind of link has an exception of its own.
    const before = on.inbox.mails.length
    const { body } = await on.logIn(ana, password, client(200))
    await on.post('/auth/email-change/request', { new_email: 'new@example.test', current_password: password }, client(200), {
      Authorization: `Bearer ${body.access_token}`,
    })
    await on.inbox.next({ to: 'new@example.test' })
    expect(on.inbox.mails.length).toBeGreaterThan(before)
  }, 60_000)

  test('past the limit a link that was used is replaced once an hour has gone by', async () => {
    const on = await withAna({ mail: { links: [{ attempts: 2, windowSeconds: 86_400 }] } })
    await ask(on, request.reset)
    const confirm = (index: number) =>
      on.post('/auth/password-reset/confirm', {
        token: tokenOf(on.inbox.mails.filter(({ kind }) => kind === 'password_reset').at(-1) as AuthMail),
        new_password: `harbour number ${index} in winter`,
      })
    expect((await confirm(1)).status).toBe(200)
    await ask(on, request.reset)
    expect(linksIn(on.inbox.mails), 'within the hour').toBe(2)
    on.clock.advance(3_599)
    await ask(on, request.reset)
    expect(linksIn(on.inbox.mails)).toBe(2)
    on.clock.advance(1)
    await ask(on, request.reset)
    expect(linksIn(on.inbox.mails)).toBe(3)
    expect((await confirm(2)).status).toBe(200)
    await ask(on, request.reset)
    expect(linksIn(on.inbox.mails)).toBe(3)
  })

  test('throttle.mail false: nothing is counted', async () => {
    const on = await withAna({ mail: false })
    await inTurn(12, () => ask(on, request.reset))
    await inTurn(4, () => on.post('/auth/signup', { email: ana, password }))
    await settled()
    expect(on.inbox.mails).toHaveLength(17)
  })

  test('a first signup gets its link also where the address has had its links, and then has one that works', async () => {
    const on = await host({ mail: { links: [{ attempts: 1, windowSeconds: 86_400 }] } })
    await on.post('/auth/signup', { email: ana, password })
    await on.inbox.next()
    await on.knex('auth_users').del()
    on.clock.advance(3_600)
    await on.post('/auth/signup', { email: ana, password })
    const token = tokenOf(await on.inbox.next())
    expect((await on.post('/auth/activate', { token })).status).toBe(200)
  })
})
