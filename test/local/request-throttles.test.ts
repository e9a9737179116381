import { describe, expect, test } from 'vitest'
import { ServiceUnavailableError } from '../../src/core/errors'
import { linkTemplates, mailbox } from '../support/mailbox'
import { client, countingHasher, inTurn, type ManyClients, manyClients, password, statuses, times, wrongPassword } from './many-clients'

const start = manyClients()
const ana = 'ana@example.test'
const pending = { autoActivate: false }

function repeated(count: number, status: number): number[] {
  return Array(count).fill(status)
}

describe('signups of a client', () => {
  const signUp = (host: ManyClients, index: number, { path = '/auth/signup', from = client(0) } = {}) =>
    host.post(path, { email: `somebody-${index}@example.test`, password }, from)

  test('R-135: the 101st within 3600 seconds is 429 SIGNUP_THROTTLED; others are served, and after the window all is fresh', async () => {
    const host = await start()
    expect(statuses(await inTurn(100, (index) => signUp(host, index)))).toEqual(repeated(100, 201))
    host.clock.advance(600)
    const refused = await signUp(host, 100)
    expect([refused.status, refused.body.code, refused.body.details, refused.headers['retry-after']]).toEqual([
      429,
      'SIGNUP_THROTTLED',
      { retry_after_seconds: 3_000 },
      '3000',
    ])
    expect((await signUp(host, 100, { from: client(1) })).status).toBe(201)
    host.clock.advance(3_000)
    expect((await signUp(host, 101)).status).toBe(201)
  })

  test('a burst of 180 makes 100 hashes; a taken address costs a unit like a free one', async () => {
    const host = await start({ settings: pending })
    host.hasher.hashed = 0
    const answers = statuses(await times(180, (index) => signUp(host, index % 2)))
    expect([answers.filter((status) => status === 201).length, answers.filter((status) => status === 429).length]).toEqual([100, 80])
    expect(host.hasher.hashed).toBe(100)
  })

  test('R-137: the twin shares the budget; a body of the wrong shape costs nothing', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' }, options: { throttle: { signup: { attempts: 2, windowSeconds: 60 } } } })
    expect(statuses(await inTurn(5, () => host.post('/auth/signup', { email: 'no address', password }, client(0))))).toEqual(
      repeated(5, 422),
    )
    expect((await signUp(host, 0)).status).toBe(201)
    expect((await signUp(host, 1, { path: '/auth/cookie/signup' })).status).toBe(201)
    expect((await signUp(host, 2)).status).toBe(429)
    expect((await signUp(host, 2, { path: '/auth/cookie/signup' })).status).toBe(429)
  })

  test('throttle.signup false: no budget', async () => {
    const host = await start({ options: { throttle: { signup: false } } })
    expect(statuses(await times(25, (index) => signUp(host, index)))).toEqual(repeated(25, 201))
  })
})

describe.each([
  ['/auth/activation/request', '/auth/password-reset/request', 'activation_request'],
  ['/auth/password-reset/request', '/auth/activation/request', 'password_reset_request'],
])('requests for a link at %s', (path, otherPath, route) => {
  const mailer = () => ({ settings: { ...linkTemplates, ...pending }, options: { mailer: mailbox(), throttle: { mail: false } } as const })

  test('R-132, R-135: the sixth of one client for one address within 900 seconds is 429 TOO_MANY_REQUESTS, whether anybody has it or not', async () => {
    const host = await start(mailer())
    await host.signUp(ana)
    const told: unknown[] = []
    host.auth.events.on('throttled', (payload) => told.push(payload))
    const seen = []
    for (const [index, email] of [ana, 'nobody@example.test'].entries()) {
      const responses = await inTurn(6, () => host.post(path, { email }, client(index)))
      seen.push(responses.map(({ status, text, headers }) => ({ status, text, headers: { ...headers, date: null } })))
    }
    expect(seen[0]?.map(({ status }) => status)).toEqual([...repeated(5, 202), 429])
    expect(JSON.parse(seen[0]?.[5]?.text ?? '')).toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_seconds: 900 } })
    expect(seen[1]).toEqual(seen[0])
    expect(told).toEqual(Array(2).fill({ code: 'TOO_MANY_REQUESTS', route, keyDigest: expect.any(String), retryAfterSeconds: 900 }))
    expect((await host.post(otherPath, { email: ana }, client(40))).status).toBe(202)
    host.clock.advance(900)
    expect((await host.post(path, { email: ana }, client(0))).status).toBe(202)
  })

  test('X14: a stranger who asks all the time, from ten clients, gets nobody else a 429; the 51st for one address is one', async () => {
    const host = await start(mailer())
    await host.signUp(ana)
    const ofStranger = await inTurn(45, (call) => host.post(path, { email: ana }, client(call % 10)))
    expect(statuses(ofStranger)).toEqual(repeated(45, 202))
    expect(statuses(await inTurn(5, () => host.post(path, { email: ana }, client(20))))).toEqual(repeated(5, 202))
    expect((await host.post(path, { email: ana }, client(21))).status).toBe(429)
    expect((await host.post(path, { email: 'bob@example.test' }, client(20))).status).toBe(202)
  })

  test('the 101st of one client is 429, whatever addresses it names; of 180 at once 100 are answered', async () => {
    const host = await start(mailer())
    const answers = statuses(await times(180, (index) => host.post(path, { email: `somebody-${index}@example.test` }, client(0))))
    expect([answers.filter((status) => status === 202).length, answers.filter((status) => status === 429).length]).toEqual([100, 80])
    expect((await host.post(path, { email: ana }, client(1))).status).toBe(202)
    expect((await host.post(otherPath, { email: ana }, client(0))).status).toBe(202)
  })

  test('throttle.links: one for all, one each, or none', async () => {
    const two = { attempts: 2, windowSeconds: 10 }
    for (const [links, byEmail, byClient] of [
      [false, -1, -1],
      [two, 2, 2],
      [{ client: two }, -1, 2],
      [{ email: two, client: two }, 2, 2],
      [{ email: false, client: two }, -1, 2],
      [{ pair: two, client: false }, -1, -1],
    ] as const) {
      const host = await start({ ...mailer(), options: { mailer: mailbox(), throttle: { links } } })
      const ofEmail = await inTurn(7, (index) => host.post(path, { email: ana }, client(1 + index)))
      const ofClient = await inTurn(7, (index) => host.post(path, { email: `somebody-${index}@example.test` }, client(0)))
      expect([statuses(ofEmail).indexOf(429), statuses(ofClient).indexOf(429)]).toEqual([byEmail, byClient])
    }
  })
})

test('an office of 60 behind one address signs up, resets passwords and asks for logins by email within 15 minutes', async () => {
  const host = await start({ settings: { ...linkTemplates, ...pending, emailLogin: 'code' }, options: { mailer: mailbox() } })
  for (const office of ['192.0.2.7', '2001:db8:1:2::7'])
    for (const path of ['/auth/signup', '/auth/password-reset/request', '/auth/email-login/request']) {
      const answers = await times(60, (index) =>
        host.post(path, { email: `${office.length}-${index}@example.test`, ...(path.endsWith('signup') && { password }) }, office),
      )
      expect(new Set(statuses(answers)), path).toEqual(new Set([path === '/auth/signup' ? 201 : 202]))
    }
})

describe('wrong current passwords', () => {
  const change = (
    host: ManyClients,
    token: string,
    currentPassword: string,
    { from = client(0), newPassword = 'yet another harbour' } = {},
  ) =>
    host.post('/auth/password-change', { current_password: currentPassword, new_password: newPassword }, from, {
      Authorization: `Bearer ${token}`,
    })

  test('the sixth of a session within 900 seconds is 429, from whichever client, even a right one; another session is served, and so is another account', async () => {
    const host = await start({ settings: { accessTokenTtlSeconds: 3_600 } })
    const first = (await host.signUp(ana)).accessToken
    const second = String((await host.logIn(ana, password)).body.access_token)
    const other = (await host.signUp('bob@example.test')).accessToken
    const answers = await inTurn(5, (index) => change(host, first, wrongPassword, { from: client(index) }))
    expect(statuses(answers)).toEqual(repeated(5, 401))
    expect(answers[0]?.body.detail).toBe('invalid email or password')
    host.clock.advance(100)
    const refused = await change(host, first, password)
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 'TOO_MANY_REQUESTS', '800'])
    expect((await change(host, other, password)).status).toBe(204)
    expect((await change(host, second, wrongPassword)).status).toBe(401)
    host.clock.advance(800)
    expect((await change(host, first, wrongPassword)).status).toBe(401)
  })

  test('R-130: of 100 at once five are looked at', async () => {
    const host = await start()
    const { accessToken } = await host.signUp(ana)
    const answers = statuses(await times(100, () => change(host, accessToken, wrongPassword)))
    expect([answers.filter((status) => status === 401).length, answers.filter((status) => status === 429).length]).toEqual([5, 95])
    expect(host.hasher.verified).toBe(5)
  })

  test('a right one gets its own unit back, no more; a refused new one, and a full hash queue, cost nothing', async () => {
    const hasher = countingHasher()
    const verify = hasher.verify.bind(hasher)
    let isBusy = false
    hasher.verify = async (hash, text) => {
      if (isBusy) throw new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
      return verify(hash, text)
    }
    const host = await start({ options: { passwordHasher: hasher } })
    const { accessToken } = await host.signUp(ana)
    expect(statuses(await inTurn(4, () => change(host, accessToken, wrongPassword)))).toEqual(repeated(4, 401))
    expect(statuses(await inTurn(6, () => change(host, accessToken, wrongPassword, { newPassword: 'short' })))).toEqual(repeated(6, 422))
    isBusy = true
    expect(statuses(await inTurn(6, () => change(host, accessToken, password)))).toEqual(repeated(6, 503))
    isBusy = false
    expect((await change(host, accessToken, password, { newPassword: password })).status).toBe(204)
    expect(statuses(await inTurn(3, () => change(host, accessToken, wrongPassword)))).toEqual([401, 429, 429])
  })

  test('they are no failed logins, and failed logins are none of them', async () => {
    const host = await start()
    const { accessToken } = await host.signUp(ana)
    await inTurn(5, () => change(host, accessToken, wrongPassword))
    expect((await host.logIn(ana, password)).status).toBe(200)
    await inTurn(5, (index) => host.logIn(ana, wrongPassword, client(index)))
    host.clock.advance(899)
    expect((await change(host, accessToken, wrongPassword)).status).toBe(429)
  })
})

describe('mails to one address', () => {
  const requests = ['/auth/activation/request', '/auth/password-reset/request']

  test('at most five within 3600 seconds, whatever they are about; past them the answer is the same, and no link dies for none', async () => {
    const mails = mailbox()
    const host = await start({ settings: { ...linkTemplates, ...pending }, options: { mailer: mails, throttle: { links: false } } })
    const nobody = await inTurn(10, (index) => host.post(String(requests[index % 2]), { email: 'nobody@example.test' }))
    await host.signUp(ana)
    const answers = await inTurn(10, async (index) => {
      const response = await host.post(String(requests[index % 2]), { email: ana }, client(index))
      if (index < 4) await arrived(mails.mails, index + 2)
      return response
    })

    expect(statuses(answers)).toEqual(repeated(10, 202))
    expect(answers.map(({ text }) => text)).toEqual(nobody.map(({ text }) => text))
    await settled()
    expect(mails.mails.map(({ to, kind }) => [to, kind])).toEqual(Array(5).fill([ana, 'activation']))
    expect(await host.knex('auth_user_tokens').where({ used_at: null })).toHaveLength(1)
    expect(await host.knex('auth_user_tokens')).toHaveLength(5)
    host.clock.advance(3_600)
    await host.post(String(requests[0]), { email: ana })
    await arrived(mails.mails, 6)
  })

  test('mails of repeated signups count too; past the limit nothing changes, and the answer is the same', async () => {
    const mails = mailbox()
    const host = await start({ settings: { ...linkTemplates, ...pending }, options: { mailer: mails } })
    const answers = await inTurn(8, async (index) => {
      const response = await host.post('/auth/signup', { email: ana, password }, client(index))
      if (index < 5) await arrived(mails.mails, index + 1)
      return response
    })
    await settled()
    expect(mails.mails.map(({ kind }) => kind)).toEqual(Array(5).fill('activation'))
    expect(answers.map(({ status, body }) => [status, Object.keys(body), body.activation_url])).toEqual(
      Array(8).fill([201, Object.keys(answers[0]?.body), null]),
    )
  })

  test('another address has its own; throttle.mail says otherwise, or false', async () => {
    for (const [mail, sent] of [
      [{ attempts: 1, windowSeconds: 60 }, 2],
      [false, 12],
    ] as const) {
      const mails = mailbox()
      const settings = { ...linkTemplates, ...pending }
      const host = await start({ settings, options: { mailer: mails, throttle: { mail, links: false } } })
      for (const email of [ana, 'bob@example.test']) {
        await host.signUp(email)
        await inTurn(5, () => host.post('/auth/activation/request', { email }))
      }
      await arrived(mails.mails, sent)
      await settled()
      expect(mails.mails).toHaveLength(sent)
    }
  })
})

/** Mails travel after the answer. */
async function arrived(mails: unknown[], count: number): Promise<void> {
  for (let waited = 0; mails.length < count && waited < 1_000; waited++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(mails.length).toBeGreaterThanOrEqual(count)
}

/** Whatever else was to be sent has been by then. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
