import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors'
import { adminOn } from '../admin/people'
import { newAddress, password, pending, post, signedIn } from '../local/people'
import { fieldValue, problemOf } from '../page-routes/people'
import { newPerson } from '../social/redirect-steps'
import { type Browser, setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { recordQueries } from '../support/record-queries'
import { everyWay, type InvitingHost, invite, inviteByMail, onInvitations, usesOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn } = onInvitations(sqlite)

class SeatsTaken extends AppError {
  static override readonly status = 402
  static override readonly code = 'SEATS_TAKEN'
}

const cookieName = '__Host-invitation'
/** What a browser sends with a form of our own page. */
const ownForm = { 'Sec-Fetch-Site': 'same-origin', Origin: 'null' }

function start(settings: object = {}, options: object = {}): Promise<InvitingHost> {
  return startOn({ settings: { tokenDelivery: 'cookie', cookieSecure: true, signupMode: 'invite', ...settings }, options })
}

const pathOf = ({ prefix }: InvitingHost, token: string | null) => `${prefix}/invitations/${token}`
const open = (host: InvitingHost, token: string | null, browser = host.browser()) => browser.get(pathOf(host, token))
const press = (host: InvitingHost, token: string | null, browser = host.browser(), fields: object = {}, headers: object = ownForm) =>
  browser
    .post(pathOf(host, token))
    .set({ ...headers })
    .type('form')
    .send(fields)
const kept = (response: supertest.Response) => setCookieOf(response, cookieName)?.value ?? null
const isCleared = (response: supertest.Response) =>
  /__Host-invitation=;.*Expires=Thu, 01 Jan 1970/.test(String(response.headers['set-cookie']))

async function logIn(host: InvitingHost, browser: Browser, { email }: { email: string }): Promise<void> {
  const { status } = await browser.post(`${host.prefix}/login`).set(ownForm).send({ email, password })
  if (status !== 200) throw new Error(`the login answers ${status}`)
}

async function enter(host: InvitingHost, changes: object = { emailVerifiedAt: new Date(0) }) {
  const [member, browser] = [await signedIn(host, changes), host.browser()]
  await logIn(host, browser, member)
  return { ...member, browser }
}

describe('the page of an invitation', () => {
  test('says who invites, for whom and until when, and neither the address of the inviter nor the data', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const email = newAddress()
    const { token } = await host.auth.service.invitations.create({ email, send: false, data: { team: 'secret team' }, by: admin.userId })
    const { status, text } = await open(host, token)
    expect(status).toBe(200)
    const until = new Date(host.clock.now().getTime() + 14 * 86_400_000)
    const day = new Intl.DateTimeFormat('en-US', { dateStyle: 'long', timeZone: 'UTC' }).format(until)
    for (const words of ['From An Administrator', `For ${email}`, `Valid until ${day}`]) expect(text).toContain(words)
    for (const words of ['secret team', admin.email, String(token)]) expect(text).not.toContain(words)
  })

  test.each(['GET', 'HEAD'] as const)('%s by a mail scanner writes nothing and sets no cookie, as often as it likes', async (method) => {
    const host = await start()
    const invitation = await inviteByMail(host, newAddress())
    const { browser } = await enter(host)
    host.clock.advance(3_600) // a page of the account would renew the session now
    const recorded = recordQueries(host.knex)
    for (const visitor of [host.browser(), browser, browser]) {
      const response = await visitor[method === 'GET' ? 'get' : 'head'](pathOf(host, invitation.token))
      expect([response.status, response.headers['set-cookie']]).toEqual([200, undefined])
    }
    const statements = recorded.stop()
    expect(statements.length).toBeGreaterThan(2)
    expect(statements.filter((statement) => !/^select /i.test(statement))).toEqual([])
    expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
  })

  test.each(['bearer', 'cookie', 'both', 'session'] as const)('exists in delivery %s', async (tokenDelivery) => {
    const host = await start({ tokenDelivery })
    const { token } = await invite(host)
    expect((await open(host, token)).status).toBe(200)
    const pressed = await press(host, token)
    expect([pressed.status, kept(pressed) !== null]).toEqual([200, true])
    expect(pressed.text).toContain('Your invitation is ready')
  })

  test('is one page for an unknown, used up, revoked and expired invitation, whose button sets no cookie', async () => {
    const host = await start()
    const [usedUp, revoked, over] = [await invite(host), await invite(host), await invite(host, { expiresInDays: 1 })]
    await host.knex('auth_invitations').where({ id: usedUp.id }).update({ uses_left: 0 })
    await host.auth.service.invitations.revoke(revoked.id)
    host.clock.advance(86_400)
    const { browser } = await enter(host)
    const texts = new Set<string>()
    for (const token of ['x', 'a'.repeat(43), usedUp.token, revoked.token, over.token]) {
      for (const visitor of [host.browser(), browser]) {
        for (const response of [await open(host, token, visitor), await press(host, token, visitor)]) {
          expect([response.status, response.headers['set-cookie']]).toEqual([400, undefined])
          texts.add(
            response.text
              .replaceAll(/nonce="[^"]*"/g, '')
              .replace(/<nav class="languages"[\s\S]*?<\/nav>/, '')
              .replaceAll(String(token), ''),
          )
        }
      }
    }
    expect([...texts].map((text) => /<h1>([^<]*)/.exec(text)?.[1])).toEqual([...texts].map(() => 'This link is no longer valid'))
  })

  test.each([
    [{ pagesEnabled: true }, '/auth/signup'],
    [{ pagesEnabled: true, loginUrl: 'https://app.example.test/in' }, '/auth/signup'],
    [{ pagesEnabled: true, signupEnabled: false, loginUrl: 'https://app.example.test/in' }, 'https://app.example.test/in'],
    [{ loginUrl: '/in' }, '/in'],
  ] as const)('with %j, both forms lead to %s', async (settings, target) => {
    const host = await start(settings)
    const { token } = await invite(host)
    const browser = host.browser()
    const pressed = await press(host, token, browser)
    expect([pressed.status, pressed.headers['location'], kept(pressed) !== null]).toEqual([303, target, true])
    const left = await browser.post(`${host.prefix}/invitations/leave`).set(ownForm).type('form').send({})
    expect([left.status, left.headers['location'], isCleared(left)]).toEqual([303, target, true])
    if (target.startsWith('https:'))
      expect((await open(host, token)).headers['content-security-policy']).toMatch(/form-action 'self' https:\/\/app\.example\.test/)
  })
})

describe('the cookie of an invitation', () => {
  test('lasts one day, for this host alone, and stands in for the token of a sign-up', async () => {
    const host = await start()
    const invitation = await invite(host)
    const browser = host.browser()
    const pressed = await press(host, invitation.token, browser)
    const cookie = [pressed.headers['set-cookie']].flat().find((line) => line?.startsWith(`${cookieName}=`))
    expect(cookie).toMatch(/; Max-Age=86400;/)
    for (const attribute of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax']) expect(cookie?.split('; ')).toContain(attribute)
    expect(cookie).not.toMatch(/Domain=/i)
    const signUp = (visitor: Browser) => visitor.post(`${host.prefix}/signup`).set(ownForm).send({ email: newAddress(), password })
    expect((await signUp(host.browser())).body.code).toBe('INVITATION_REQUIRED')
    expect((await signUp(browser)).status).toBe(201)
    host.clock.advance(86_400)
    expect((await signUp(browser)).body.code).toBe('INVITATION_REQUIRED')
  })

  test('gives way to a token in the request', async () => {
    const host = await start()
    const [ofCookie, ofBody] = [await invite(host), await invite(host)]
    const browser = host.browser()
    await press(host, ofCookie.token, browser)
    const body = { email: newAddress(), password, invitation: ofBody.token }
    const { body: signup } = await browser.post(`${host.prefix}/signup`).set(ownForm).send(body)
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: body.email }))
    const activated = await browser.post(`${host.prefix}/activate`).set(ownForm).send({ token, signup_token: signup.signup_token })
    expect([activated.status, isCleared(activated)]).toEqual([200, false]) // the other invitation is still good
    expect([(await usesOf(host, ofCookie)).left, (await usesOf(host, ofBody)).left]).toEqual([1, 0])
  })

  test('made by another site or changed by hand, it is none', async () => {
    const host = await start()
    const { token } = await invite(host)
    const body = { email: newAddress(), password }
    for (const value of [
      token,
      Buffer.from(String(token)).toString('base64url'),
      `${Buffer.from(String(token)).toString('base64url')}.9999999999.x`,
    ]) {
      const answer = await host.browser().post(`${host.prefix}/signup`).set(ownForm).set('Cookie', `${cookieName}=${value}`).send(body)
      expect([value, answer.status]).toEqual([value, 403])
    }
  })

  test.each([1, 5])('is cleared when the invitation of %i uses is used, and not before', async (uses) => {
    const host = await start()
    const { token: invitation } = await invite(host, { uses })
    const [browser, email] = [host.browser(), newAddress()]
    await press(host, invitation, browser)
    const signup = await browser.post(`${host.prefix}/signup`).set(ownForm).send({ email, password })
    expect(isCleared(signup)).toBe(false)
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    expect(isCleared(await browser.post(`${host.prefix}/activate`).set(ownForm).send({ token }))).toBe(true)
  })

  test.each([1, 5])('is cleared by the page of an activation that signs nobody in, with %i uses', async (uses) => {
    const host = await start({ backendLinks: true })
    const { token: invitation } = await invite(host, { uses })
    const [browser, email] = [host.browser(), newAddress()]
    await press(host, invitation, browser)
    await browser.post(`${host.prefix}/signup`).set(ownForm).send({ email, password })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const activated = await browser.post(`${host.prefix}/activate/${token}`).set(ownForm).type('form').send({})
    expect([activated.status, isCleared(activated)]).toEqual([200, true])
  })

  test('stays after an activation of another account, whose sign-up brought another invitation', async () => {
    const host = await start({ backendLinks: true })
    const [ofCookie, other] = [await invite(host, { uses: 5 }), await invite(host)]
    const [browser, email] = [host.browser(), newAddress()]
    await press(host, ofCookie.token, browser)
    await browser.post(`${host.prefix}/signup`).set(ownForm).send({ email, password, invitation: other.token })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const activated = await browser.post(`${host.prefix}/activate/${token}`).set(ownForm).type('form').send({})
    expect([activated.status, isCleared(activated)]).toEqual([200, false])
  })

  test('is cleared at logout', async () => {
    const host = await start()
    const { browser } = await enter(host)
    await press(host, (await invite(host)).token, browser)
    const out = await browser.post(`${host.prefix}/logout`).set(ownForm).send({})
    expect([out.status, isCleared(out)]).toEqual([204, true])
  })

  test('is put aside by the button of the sign-up page, also when the invitation is over', async () => {
    const host = await start({ pagesEnabled: true, signupMode: 'open' })
    const { id, token } = await invite(host)
    const browser = host.browser()
    await press(host, token, browser)
    await host.auth.service.invitations.revoke(id)
    const page = await browser.get(`${host.prefix}/signup`)
    expect(page.text).toContain('You are signing up with an invitation.')
    expect(page.text).toMatch(/action="\/auth\/invitations\/leave"/)
    await browser.post(`${host.prefix}/invitations/leave`).set(ownForm).type('form').send({})
    expect((await browser.get(`${host.prefix}/signup`)).text).not.toContain('invitation')
  })

  test('is put aside by a button after a login by email, which mails nothing new while its invitation is over', async () => {
    const host = await start({ pagesEnabled: true, signupMode: 'open', ...everyWay })
    const { id, token } = await invite(host)
    const [browser, email] = [host.browser(), newAddress()]
    await press(host, token, browser)
    await host.auth.service.invitations.revoke(id)
    const ask = () => browser.post(`${host.prefix}/email-login/request`).set(ownForm).type('form').send({ email })
    expect((await ask()).status).toBe(303)
    const page = await browser.get(`${host.prefix}/check-mail`)
    expect(page.text).toMatch(/action="\/auth\/invitations\/leave"/)
    await host.auth.drain()
    expect(host.mails.mails.filter(({ to }) => to === email)).toEqual([])
    await browser.post(`${host.prefix}/invitations/leave`).set(ownForm).type('form').send({})
    expect((await browser.get(`${host.prefix}/check-mail`)).text).not.toContain('/invitations/leave')
    await ask()
    await host.mails.next({ kind: 'email_login', to: email })
  })

  test('is put aside by a button after a refused login of a provider', async () => {
    const host = await start({ pagesEnabled: true, signupMode: 'open', ...everyWay, oauthErrorRedirect: null })
    const { id, token } = await invite(host)
    const browser = host.browser()
    await press(host, token, browser)
    await host.auth.service.invitations.revoke(id)
    const refused = await signIn(host, browser, { profile: newPerson({ email: newAddress() }) })
    expect(refused.headers['location']).toBe('/auth/login?error=INVITATION_REQUIRED')
    const page = await browser.get('/auth/login?error=INVITATION_REQUIRED')
    expect(problemOf(page.text)).toBe('You need an invitation that is valid for this address.')
    expect(page.text).toMatch(/action="\/auth\/invitations\/leave"/)
    expect((await browser.get('/auth/login')).text).not.toContain('/invitations/leave')
  })

  test('stays if it cannot be looked up, and the sign-in succeeds all the same', async () => {
    const host = await start({ signupMode: 'open' })
    const { token } = await invite(host)
    const [{ link }, browser] = [await pending(host), host.browser()]
    await press(host, token, browser)
    await host.knex.schema.renameTable('auth_invitations', 'auth_invitations_away')
    const activated = await browser.post(`${host.prefix}/activate`).set(ownForm).send({ token: link, password })
    await host.knex.schema.renameTable('auth_invitations_away', 'auth_invitations')
    expect([activated.status, isCleared(activated)]).toEqual([200, false])
    expect(host.logs.entries.filter(({ message }) => message.includes('so its cookie stays'))).toHaveLength(1)
  })

  test('in mode invite, the sign-up page without one says that an invitation is needed', async () => {
    const host = await start({ pagesEnabled: true })
    expect((await host.browser().get(`${host.prefix}/signup`)).text).toContain('You need an invitation to sign up.')
  })

  test('in mode invite, the sign-in page promises a new account by email only with one', async () => {
    const host = await start({ pagesEnabled: true, ...everyWay })
    const browser = host.browser()
    const promises = async () => (await browser.get(`${host.prefix}/login`)).text.includes('and we will create one')
    expect(await promises()).toBe(false)
    await press(host, (await invite(host)).token, browser)
    expect(await promises()).toBe(true)
  })
})

describe('the page of an invitation under attack', () => {
  const foreign = [
    { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' },
    { Origin: 'https://evil.example' },
    { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ]

  test('an <img> of another site sets no cookie, and joins nobody', async () => {
    const host = await start()
    const invitation = await invite(host)
    const { browser } = await enter(host)
    const image = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' }
    for (const path of [pathOf(host, invitation.token), `${host.prefix}/invitations/leave`, `${host.prefix}/invitations/redeem`])
      expect([path, (await browser.get(path).set(image)).headers['set-cookie']]).toEqual([path, undefined])
    expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
    expect(host.calls).toEqual([])
  })

  test.each(foreign)('a form of another site (%j) sets no cookie, clears none, and joins nobody', async (headers) => {
    const host = await start()
    const [own, planted] = [await invite(host), await invite(host)]
    const { browser } = await enter(host)
    await press(host, own.token, browser)
    const owner = fieldValue((await open(host, planted.token, browser)).text, 'form_of')
    expect(owner).toMatch(/^[\w-]{43}$/)
    for (const fields of [{}, { form_of: owner }]) {
      const answer = await press(host, planted.token, browser, fields, headers)
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
    }
    const left = await browser.post(`${host.prefix}/invitations/leave`).set(headers).type('form').send({})
    expect([left.status, left.headers['set-cookie']]).toEqual([403, undefined])
    const redeemed = await browser.post(`${host.prefix}/invitations/redeem`).set(headers).send({ token: planted.token })
    expect([redeemed.status, redeemed.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    expect(await usesOf(host, planted)).toEqual({ left: 1, users: [] })
    expect(host.calls).toEqual([])
  })
})

describe('the page of an invitation for somebody who is signed in', () => {
  test.each(['cookie', 'both', 'session'] as const)('uses it with that account, in delivery %s', async (tokenDelivery) => {
    const host = await start({ tokenDelivery })
    const invitation = await invite(host, { data: { team: 'a' } })
    const member = await signedIn(host)
    const browser = host.browser()
    await browser
      .post(`${host.prefix}${tokenDelivery === 'both' ? '/cookie' : ''}/login`)
      .set(ownForm)
      .send({ email: member.email, password })
    if (tokenDelivery !== 'both') host.clock.advance(1_800) // the access cookie is over; the session is not
    const page = await open(host, invitation.token, browser)
    expect(page.text).toContain(`You are signed in as ${member.email}.`)
    expect(page.text).toContain('Use the invitation')
    const form_of = fieldValue(page.text, 'form_of')
    for (const _twice of [1, 2]) {
      const used = await press(host, invitation.token, browser, { form_of })
      expect([used.status, kept(used)]).toEqual([200, null])
      expect(used.text).toContain('The invitation is used')
    }
    expect(await usesOf(host, invitation)).toEqual({ left: 0, users: [member.userId] })
    expect(host.calls).toMatchObject([{ userId: member.userId, data: { team: 'a' } }])
  })

  test('needs no fresh session', async () => {
    const host = await start({ freshSessionSeconds: 60 })
    const [invitation, { browser }] = [await invite(host), await enter(host)]
    host.clock.advance(600)
    const form_of = fieldValue((await open(host, invitation.token, browser)).text, 'form_of')
    expect((await press(host, invitation.token, browser, { form_of })).status).toBe(200)
  })

  test('uses nothing if another person is signed in by then, or nobody is', async () => {
    const host = await start()
    const [invitation, first, second] = [await invite(host), await enter(host), await signedIn(host)]
    const form_of = fieldValue((await open(host, invitation.token, first.browser)).text, 'form_of')
    await logIn(host, first.browser, second)
    for (const visitor of [first.browser, host.browser()]) {
      const answer = await press(host, invitation.token, visitor, { form_of })
      expect([answer.status, problemOf(answer.text)]).toEqual([
        400,
        'You are signed in differently now, so the invitation was not used. Please try again.',
      ])
      expect(kept(answer)).toBeNull()
    }
    expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
  })

  test('a revoked session counts as nobody', async () => {
    const host = await start()
    const [invitation, { browser, userId }] = [await invite(host), await enter(host)]
    const form_of = fieldValue((await open(host, invitation.token, browser)).text, 'form_of')
    await host.auth.service.revokeSessions(userId)
    expect(fieldValue((await open(host, invitation.token, browser)).text, 'form_of')).toBeNull()
    expect((await press(host, invitation.token, browser, { form_of })).status).toBe(400)
    expect((await usesOf(host, invitation)).left).toBe(1)
  })

  test('of another address: it offers only a sign-up, and says to sign out first', async () => {
    const host = await start()
    const [invitation, { browser, email }] = [await inviteByMail(host, newAddress()), await enter(host)]
    const { text } = await open(host, invitation.token, browser)
    expect(text).toContain(`You are signed in as ${email}. To create another account, sign out and open this link again.`)
    expect(fieldValue(text, 'form_of')).toBeNull()
  })

  test('for the address of an account that has not verified it: 403, and a mailed token verifies nothing there', async () => {
    const host = await start()
    const { browser, email, userId } = await enter(host, { emailVerifiedAt: null })
    const invitation = await inviteByMail(host, email)
    const form_of = fieldValue((await open(host, invitation.token, browser)).text, 'form_of')
    const answer = await press(host, invitation.token, browser, { form_of })
    expect([answer.status, answer.text.includes('You need an invitation that is valid for this address.')]).toEqual([403, true])
    expect((await host.knex('auth_users').where({ id: userId }).first('email_verified_at')).email_verified_at).toBeNull()
    expect((await usesOf(host, invitation)).left).toBe(1)
  })

  test('the refusal of the host is the status of the page, and nothing is used', async () => {
    const host = await start({}, { onInvitationAccepted: () => Promise.reject(new SeatsTaken()) })
    const [invitation, { browser }] = [await invite(host), await enter(host)]
    const form_of = fieldValue((await open(host, invitation.token, browser)).text, 'form_of')
    expect((await press(host, invitation.token, browser, { form_of })).status).toBe(402)
    expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
  })

  test('clears the cookie that an earlier visit left', async () => {
    const host = await start()
    const [invitation, member, browser] = [await invite(host, { uses: 2 }), await signedIn(host), host.browser()]
    await press(host, invitation.token, browser)
    await logIn(host, browser, member)
    const form_of = fieldValue((await open(host, invitation.token, browser)).text, 'form_of')
    expect(isCleared(await press(host, invitation.token, browser, { form_of }))).toBe(true)
  })
})

test('a JSON redeem clears the cookie of that browser', async () => {
  const host = await start()
  const [invitation, { browser }] = [await invite(host), await enter(host)]
  await press(host, invitation.token, browser)
  const answer = await browser.post(`${host.prefix}/invitations/redeem`).set(ownForm).send({ token: invitation.token })
  expect([answer.status, isCleared(answer)]).toEqual([204, true])
  expect((await post(host, '/invitations/redeem', { token: invitation.token })).status).toBe(401)
})
