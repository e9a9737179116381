import { describe, expect, test } from 'vitest'
import { OAuthStateMismatchError } from '../../src/core/errors'
import { type Mounted, setCookieOf, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { oldBrowser } from '../support/cookie-check'
import { cookiesAfter } from '../support/cookie-jar'
import { beginLink, member, redeem } from './link-steps'
import { begin, callBack, cookiePair, type HttpResponse, newPerson } from './redirect-steps'

const start = appPerTest()
const two = { providers: { corp: {}, acme: {} } }
const origin = 'https://app.example.test'

const linkedTo = async (host: Mounted, userId: string) =>
  (await host.auth.service.listIdentities(userId)).map(({ provider }) => provider).sort()

const pairsOf = (response: HttpResponse, ...names: string[]) => names.map((name) => cookiePair(response, name)).join('; ')

/** Somebody who signed in by cookies, and how that browser sends them. */
async function signedIn(host: Mounted) {
  const { query, cookie } = await begin(host, { profile: newPerson() })
  const login = await callBack(host, query, { cookie })
  const sessionAt = (path: string) => cookiesAfter(login, path)
  return { session: sessionAt('/auth/oauth/acme/link'), sessionAt, userId: String(login.body.user_id) }
}

/** A link begun with these cookies: what the browser is sent back with, and the cookies that the start set. */
async function begun(host: Mounted, session: string, profile = newPerson()) {
  const response = await host.browser().post('/auth/oauth/acme/link').set({ Origin: origin, Cookie: session })
  expect(response.status, response.text).toBe(200)
  const { callbackQuery: query } = host.provider.authorize(response.body.authorize_url, { profile })
  const set = ((response.headers['set-cookie'] ?? []) as unknown as string[]).map((line) => line.split(';')[0]).join('; ')
  return { response, query, set, state: String(cookiePair(response)), profile }
}

describe('a ticket', () => {
  async function ticketOf(host: Mounted, who: Awaited<ReturnType<typeof member>>, profile = newPerson()) {
    const { query } = await beginLink(host, who, { profile })
    const answer = await who.browser.get('/auth/oauth/acme/callback').query(query)
    expect([answer.status, Object.keys(answer.body)]).toEqual([200, ['link_ticket']])
    return { ticket: answer.body.link_ticket as string, profile }
  }

  test('links the identity for the account and the session that began the link, once', async () => {
    const host = await start(two)
    const ana = await member(host)
    const { ticket, profile } = await ticketOf(
      host,
      ana,
      newPerson({ picture: `https://img.example.test/${'x'.repeat(900)}`, name: 'Ação 🙂' }),
    )
    expect(await linkedTo(host, ana.userId)).toEqual(['corp'])

    const first = await redeem(host, ana.browser, ticket, ana.token)
    const again = await redeem(host, ana.browser, ticket, ana.token)

    expect([first.status, first.body]).toEqual([200, expect.objectContaining({ provider: 'acme', subject: profile.sub, name: 'Ação 🙂' })])
    expect([again.status, again.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect(await linkedTo(host, ana.userId)).toEqual(['acme', 'corp'])
    const [row] = await host.knex('auth_user_tokens').where({ purpose: 'LINK_TICKET' })
    expect(String(row.payload).length).toBeLessThanOrEqual(320)
    expect(JSON.stringify(row)).not.toContain(ticket.slice(0, 43))
  })

  test('of somebody else is 401 OAUTH_STATE_MISMATCH, and is used up: the owner cannot redeem it afterwards', async () => {
    const host = await start(two)
    const [ana, mallory] = [await member(host), await member(host)]
    const anaElsewhere = await signIn(host, host.browser(), { profile: ana.profile })
    for (const token of [mallory.token, anaElsewhere.body.access_token as string]) {
      const { ticket } = await ticketOf(host, ana)
      expect((await redeem(host, mallory.browser, ticket, token)).body.code).toBe('OAUTH_STATE_MISMATCH')
      expect((await redeem(host, ana.browser, ticket, ana.token)).body.code).toBe('OAUTH_STATE_MISMATCH')
    }
    const { ticket } = await ticketOf(host, ana)
    expect((await redeem(host, mallory.browser, ticket, null)).status).toBe(401)
    expect((await redeem(host, ana.browser, ticket, ana.token)).status, 'nobody signed in spends nothing').toBe(200)
    expect(await linkedTo(host, mallory.userId)).toEqual(['corp'])
  })

  test('lives for 300 seconds', async () => {
    const host = await start(two)
    const ana = await member(host)
    const [early, late] = [await ticketOf(host, ana), await ticketOf(host, ana)]
    host.clock.advance(299)
    expect((await redeem(host, ana.browser, early.ticket, ana.token)).status).toBe(200)
    host.clock.advance(1)
    expect((await redeem(host, ana.browser, late.ticket, ana.token)).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('cannot be changed, made up, or be anything else: what it carries is covered by its hash', async () => {
    const host = await start(two)
    const ana = await member(host)
    const { ticket } = await ticketOf(host, ana)
    const [random, carried] = ticket.split('.')
    const other = Buffer.from(
      JSON.stringify({ provider: 'acme', subject: 'the-victim', email: null, emailVerified: null, name: null, picture: null }),
    )
    const junk = [
      `${random}.${other.toString('base64url')}`,
      String(random),
      `${random}.`,
      `${ticket}x`,
      `.${carried}`,
      'x',
      'x'.repeat(8000),
    ]
    for (const text of junk)
      expect((await redeem(host, ana.browser, text, ana.token)).body.code, text.slice(0, 60)).toBe('OAUTH_STATE_MISMATCH')
    for (const value of [undefined, 7, null, {}])
      expect((await redeem(host, ana.browser, value, ana.token)).body.code).toBe('VALIDATION_ERROR')
    expect((await redeem(host, ana.browser, ticket, ana.token)).status).toBe(200)
  })

  test('ends with the session that began, with a new password and with the account’s deactivation', async () => {
    const host = await start(two)
    const ana = await member(host)
    const { ticket } = await ticketOf(host, ana)
    await host.knex('auth_users').where({ id: ana.userId }).update({ hashed_password: 'test$changed' })
    expect((await redeem(host, ana.browser, ticket, ana.token)).body.code).toBe('OAUTH_STATE_MISMATCH')

    const { ticket: next } = await ticketOf(host, ana)
    await host.browser().post('/auth/logout').send({ refresh_token: ana.refreshToken })
    expect((await redeem(host, ana.browser, next, ana.token)).body.code).toBe('INVALID_TOKEN')
    expect(await linkedTo(host, ana.userId)).toEqual(['corp'])
  })

  test('may be redeemed when the session is no longer fresh: what was begun in a fresh one may be finished', async () => {
    const host = await start({ ...two, settings: { accessTokenTtlSeconds: 3_600 } })
    const ana = await member(host)
    host.clock.advance(700)
    const { ticket } = await ticketOf(host, ana)
    host.clock.advance(290)
    expect((await redeem(host, ana.browser, ticket, ana.token)).status).toBe(200)
  })

  test('of twenty calls at once exactly one links', async () => {
    const host = await start(two)
    const ana = await member(host)
    const { ticket } = await ticketOf(host, ana)
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(host, ana.browser, ticket, ana.token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(401)])
  })

  test('an identity of another account is 409 at the redemption', async () => {
    const host = await start(two)
    const [ana, bob] = [await member(host), await member(host)]
    const taken = newPerson()
    await redeem(host, ana.browser, (await ticketOf(host, ana, taken)).ticket, ana.token)
    const answer = await redeem(host, bob.browser, (await ticketOf(host, bob, taken)).ticket, bob.token)
    expect([answer.status, answer.body.code]).toEqual([409, 'OAUTH_IDENTITY_TAKEN'])
  })

  test('without a table of sessions it is bound to the account', async () => {
    const { createKnexStore } = await import('../../src')
    const { databases } = await import('../support/databases')
    const [sqlite] = await databases()
    const opened = await sqlite?.open({ memory: true })
    if (!opened) throw new Error('no database')
    const { mount } = await import('../support/app')
    const host = await mount({ knex: opened.knex, ...two, options: { store: createKnexStore({ knex: opened.knex, sessions: false }) } })
    const [ana, mallory] = [await member(host), await member(host)]
    const stolen = await ticketOf(host, ana)
    expect((await redeem(host, mallory.browser, stolen.ticket, mallory.token)).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect((await redeem(host, ana.browser, (await ticketOf(host, ana)).ticket, ana.token)).status).toBe(200)
    await host.close()
    await opened.close()
  })
})

describe('in cookies', () => {
  const cookie = { ...two, settings: { tokenDelivery: 'cookie' as const } }

  test('the callback links where the same session is signed in, and hands out a ticket where nobody is', async () => {
    const host = await start(cookie)
    const ana = await signedIn(host)
    const [direct, later] = [await begun(host, ana.session), await begun(host, ana.session)]

    const nobody = await callBack(host, later.query, { key: 'acme', cookie: later.state })
    expect(Object.keys(nobody.body)).toEqual(['link_ticket'])
    expect(await linkedTo(host, ana.userId)).toEqual(['corp'])
    const linked = await callBack(host, direct.query, { key: 'acme', cookie: `${direct.state}; ${ana.session}` })
    expect([linked.status, linked.body.provider]).toEqual([200, 'acme'])
  })

  test('another session of the same account gets a ticket, which only the first one redeems', async () => {
    const host = await start(cookie)
    const profile = newPerson()
    const sessions = [await signIn(host, host.browser(), { profile }), await signIn(host, host.browser(), { profile })]
    const [one = '', other = ''] = sessions.map((login) => pairsOf(login, 'access_token', 'refresh_token'))
    const link = await begun(host, one)
    const { body } = await callBack(host, link.query, { key: 'acme', cookie: `${link.state}; ${other}` })
    expect(Object.keys(body)).toEqual(['link_ticket'])
    const answer = await host
      .browser()
      .post('/auth/oauth/link/redeem')
      .set({ Origin: origin, Cookie: one })
      .send({ ticket: body.link_ticket })
    expect([answer.status, answer.body.provider]).toEqual([200, 'acme'])
  })

  test('the ticket is in the fragment of the success redirect, beside a fragment of its own', async () => {
    for (const [target, expected] of [
      ['/account?tab=1', /^\/account\?tab=1#link_ticket=[\w.-]+$/],
      ['/app#/done', /^\/app#\/done&link_ticket=[\w.-]+$/],
    ] as const) {
      const host = await start({ ...two, settings: { tokenDelivery: 'cookie', oauthSuccessRedirect: target } })
      const login = await signIn(host, host.browser(), { profile: newPerson() })
      const link = await begun(host, pairsOf(login, 'access_token', 'refresh_token'))
      const answer = await callBack(host, link.query, { key: 'acme', cookie: link.state })
      expect([answer.status, answer.headers['referrer-policy']]).toEqual([302, 'no-referrer'])
      expect(answer.headers['location']).toMatch(expected)
    }
  })

  test('in both, a ticket is redeemed by header, and by cookie only from our own pages', async () => {
    const host = await start({ ...two, settings: { tokenDelivery: 'both' } })
    const ana = await signedIn(host)
    for (const path of ['/auth/oauth/link/redeem', '/auth/cookie/oauth/link/redeem']) {
      const link = await begun(host, ana.session)
      const { body } = await callBack(host, link.query, { key: 'acme', cookie: link.state })
      const send = (Origin: string) =>
        host
          .browser()
          .post(path)
          .set({ Origin, Cookie: ana.sessionAt(path), ...oldBrowser })
          .send({ ticket: body.link_ticket })
      expect((await send('https://evil.example')).body.code).toBe('CSRF_VALIDATION_FAILED')
      expect((await send(origin)).status, path).toBe(200)
      await host.auth.service.unlinkIdentity(ana.userId, 'acme')
    }
  })
})

describe('Why: a link attempt’s cookie that a sibling domain planted ties nothing', () => {
  test('X20: in bearer delivery the victim’s browser gets a ticket, which only the attacker’s session could redeem', async () => {
    const host = await start(two)
    const mallory = await member(host)
    const victim = newPerson()
    const { query, response } = await beginLink(host, mallory, { profile: victim })

    const lured = await callBack(host, query, { key: 'acme', cookie: String(cookiePair(response)) })

    expect([lured.status, Object.keys(lured.body)]).toEqual([200, ['link_ticket']])
    expect(await linkedTo(host, mallory.userId)).toEqual(['corp'])
    const own = await member(host)
    expect((await redeem(host, own.browser, lured.body.link_ticket, own.token)).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect((await redeem(host, mallory.browser, lured.body.link_ticket, mallory.token)).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('X20: in cookie delivery it ties nothing to a browser where nobody, or the victim, is signed in', async () => {
    const host = await start({ ...two, settings: { tokenDelivery: 'cookie' } })
    const [mallory, victim] = [await signedIn(host), await signedIn(host)]
    const [first, second] = [await begun(host, mallory.session), await begun(host, mallory.session)]

    expect(Object.keys((await callBack(host, first.query, { key: 'acme', cookie: first.state })).body)).toEqual(['link_ticket'])
    const answer = await callBack(host, second.query, { key: 'acme', cookie: `${second.state}; ${victim.session}` })
    expect([answer.status, answer.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect([await linkedTo(host, mallory.userId), await linkedTo(host, victim.userId)]).toEqual([['corp'], ['corp']])
  })

  test('X20: with Secure cookies, not even together with a planted session: the browser lacks the __Host- cookie of the start', async () => {
    const host = await start({ ...two, settings: { tokenDelivery: 'cookie', cookieSecure: true } })
    const { session, userId } = await signedIn(host)
    const [planted, own] = [await begun(host, session), await begun(host, session)]
    expect(setCookieOf(planted.response, '__Host-oauth_binding')?.attributes).toMatch(/Path=\/; .*HttpOnly; Secure; SameSite=Lax/)

    const lured = await callBack(host, planted.query, { key: 'acme', cookie: `${planted.state}; ${session}` })
    expect(Object.keys(lured.body)).toEqual(['link_ticket'])
    const page = (cookie: string) =>
      host.browser().post('/auth/oauth/link/redeem').set({ Origin: origin, Cookie: cookie }).send({ ticket: lured.body.link_ticket })
    expect((await page(session)).body.code, 'the page of the victim’s browser cannot redeem it either').toBe('OAUTH_STATE_MISMATCH')
    expect((await page(`${session}; ${own.set}`)).body.code, 'it is used up').toBe('OAUTH_STATE_MISMATCH')
    expect(await linkedTo(host, userId)).toEqual(['corp'])

    const linked = await callBack(host, own.query, { key: 'acme', cookie: `${session}; ${own.set}` })
    expect([linked.status, linked.body.provider]).toEqual([200, 'acme'])
  })
})

test('service.redeemLinkTicket does the same without HTTP', async () => {
  const host = await start(two)
  const ana = await member(host)
  const { query } = await beginLink(host, ana)
  const { body } = await ana.browser.get('/auth/oauth/acme/callback').query(query)
  const [session] = await host.knex('auth_sessions').where({ user_id: ana.userId })
  const identity = await host.auth.service.redeemLinkTicket(ana.userId, body.link_ticket, { sessionId: session.id })
  expect(identity).toMatchObject({ userId: ana.userId, provider: 'acme' })
  await expect(host.auth.service.redeemLinkTicket(ana.userId, body.link_ticket, { sessionId: session.id })).rejects.toThrow(
    OAuthStateMismatchError,
  )
})
