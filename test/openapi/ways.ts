import type supertest from 'supertest'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { actions, adminOn } from '../admin/people'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, pending, post, resetLink, signedIn } from '../local/people'
import { person } from '../login-tasks/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, type EnrolledMember, enrolled, signedInAgain } from '../mfa/people'
import { signupBody } from '../passkeys/newcomers'
import { logIn as logInByPasskey, newAuthenticator, ownerWithFactor, passkeyOwner, register } from '../passkeys/people'
import { device, by as sessionOf } from '../server-session/devices'
import { addIdentity } from '../social/accounts-at-hand'
import { begin, callBack, newPerson } from '../social/redirect-steps'
import { setCookieOf } from '../support/app'
import { tokenOf } from '../support/mailbox'
import { changePassword, undoTokenOf } from '../undo/people'

/** Uses one operation as somebody would for whom it is there. */
export type Way = (host: LocalHost) => PromiseLike<supertest.Response>

const get = (host: LocalHost, path: string, headers: Record<string, string> = {}) =>
  host.browser().get(`${host.prefix}${path}`).set(headers)

const form = (host: LocalHost, path: string, fields: object = {}) => host.browser().post(`${host.prefix}${path}`).type('form').send(fields)

/** A person in the second session of a factor, who may do everything. */
async function insider(host: LocalHost): Promise<EnrolledMember> {
  return signedInAgain(host, await enrolled(host))
}

async function mailedLink(host: LocalHost, path: '/email-verify/request' | '/email-change/request'): Promise<string> {
  const person = await signedIn(host, path === '/email-verify/request' ? { emailVerifiedAt: null } : {})
  const to = path === '/email-verify/request' ? person.email : newAddress()
  await post(host, path, { new_email: to, current_password: password }, bearerOf(person))
  return tokenOf(await host.mails.next({ kind: path === '/email-verify/request' ? 'email_verification' : 'email_change', to }))
}

async function resetToken(host: LocalHost): Promise<string> {
  return resetLink(host, (await signedIn(host)).email)
}

async function emailLoginToken(host: LocalHost): Promise<string> {
  const { url } = await host.auth.service.requestEmailLogin((await signedIn(host)).email)
  return String(url?.split('/').at(-1))
}

async function undoToken(host: LocalHost): Promise<string> {
  const person = await signedIn(host)
  await changePassword(host, person)
  return undoTokenOf(host, person.email)
}

async function unconfirmed(host: LocalHost) {
  const person = await signedIn(host)
  const { secret } = await host.auth.service.enrollTotp(person.userId)
  return { person, secret }
}

/** Links by a redirect, in a browser that nobody is signed in for. */
async function redeemed(host: LocalHost, path: string) {
  const person = await signedIn(host)
  const started = await post(host, '/oauth/corp/link', {}, bearerOf(person))
  const { callbackQuery } = host.provider.authorize(started.body.authorize_url, { profile: newPerson() })
  const answer = await callBack(host, callbackQuery, { cookie: `oauth_state=${setCookieOf(started, 'oauth_state')?.value}` })
  const ticket = answer.body.link_ticket ?? String(answer.headers['location']).split('#link_ticket=')[1]
  return post(host, path, { ticket }, bearerOf(person))
}

const social: Readonly<Record<string, Way>> = {
  'get /oauth/{provider}/login': (host) => get(host, '/oauth/corp/login'),
  async 'get /oauth/{provider}/callback'(host) {
    const { query, cookie } = await begin(host, { profile: newPerson() })
    return callBack(host, query, { cookie })
  },
  async 'post /oauth/{provider}/callback'(host) {
    const started = await get(host, '/oauth/acme/login')
    const { callbackForm } = host.provider.authorize(String(started.headers['location']), { profile: newPerson() })
    const cookie = `__Host-oauth_state_post=${setCookieOf(started, '__Host-oauth_state_post')?.value}`
    return form(host, '/oauth/acme/callback', callbackForm ?? {}).set('Cookie', cookie)
  },
  async 'get /oauth/accounts'(host) {
    const person = await signedIn(host)
    await addIdentity(host.knex, person.userId)
    return get(host, '/oauth/accounts', bearerOf(person))
  },
  async 'post /oauth/{provider}/reauthenticate'(host) {
    const person = await signedIn(host)
    await addIdentity(host.knex, person.userId)
    await host.knex('auth_identities').where({ user_id: person.userId }).update({ created_at: 0 })
    return post(host, '/oauth/corp/reauthenticate', {}, bearerOf(person))
  },
  'post /oauth/link/redeem': (host) => redeemed(host, '/oauth/link/redeem'),
  'post /cookie/oauth/link/redeem': (host) => redeemed(host, '/cookie/oauth/link/redeem'),
  async 'post /oauth/accounts/unlink'(host) {
    const person = await signedIn(host)
    await addIdentity(host.knex, person.userId)
    return post(host, '/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(person))
  },
  'post /oauth/{provider}/token': (host) =>
    post(host, '/oauth/corp/token', { access_token: host.provider.issueAccessToken({ profile: newPerson() }) }),
  async 'post /oauth/exchange'(host) {
    const verifier = 'v'.repeat(43)
    const app = { redirect_to: 'com.example.app:/signed-in', code_challenge: codeChallengeOf(verifier) }
    const { query, cookie } = await begin(host, { profile: newPerson(), query: app })
    const code = String((await callBack(host, query, { cookie })).headers['location']).split('code=')[1]
    return post(host, '/oauth/exchange', { code, code_verifier: verifier })
  },
  async 'post /oauth/{provider}/link'(host) {
    const person = await signedIn(host)
    const redirect = await post(host, '/oauth/corp/link', {}, bearerOf(person))
    const token = host.provider.issueAccessToken({ profile: newPerson() })
    const linked = await post(host, '/oauth/corp/link', { access_token: token }, bearerOf(person))
    const again = await post(host, '/oauth/corp/link', { access_token: token }, bearerOf(person))
    return [redirect, linked].find(({ status }) => status >= 300) ?? again
  },
}

/** What answers in the body, and again in cookies. */
function delivered(base: '' | '/cookie'): Record<string, Way> {
  const inCookie = base === '/cookie'
  return {
    [`post ${base}/signup`]: (host) => post(host, `${base}/signup`, { email: newAddress(), password }),
    [`post ${base}/signup/passkey`]: async (host) =>
      post(host, `${base}/signup/passkey`, await signupBody(host, newAddress(), newAuthenticator())),
    [`post ${base}/activate`]: async (host) => post(host, `${base}/activate`, { token: (await pending(host)).link }),
    [`post ${base}/activate/{token}`]: async (host) => post(host, `${base}/activate/${(await pending(host)).link}`),
    [`post ${base}/login`]: async (host) => post(host, `${base}/login`, { email: (await signedIn(host)).email, password }),
    [`post ${base}/password-reset/confirm`]: async (host) =>
      post(host, `${base}/password-reset/confirm`, { token: await resetToken(host), new_password: otherPassword }),
    [`post ${base}/email-login/request`]: (host) => post(host, `${base}/email-login/request`, { email: newAddress() }),
    [`post ${base}/email-login/confirm`]: async (host) => post(host, `${base}/email-login/confirm`, { token: await emailLoginToken(host) }),
    [`post ${base}/refresh`]: async (host) => {
      const { email, refreshToken } = await signedIn(host)
      if (!inCookie) return post(host, `${base}/refresh`, { refresh_token: refreshToken })
      const cookie = setCookieOf(await post(host, '/cookie/login', { email, password }), 'refresh_token')
      return post(host, `${base}/refresh`, {}, { Cookie: `refresh_token=${cookie?.value}` })
    },
    [`post ${base}/logout`]: async (host) =>
      post(host, `${base}/logout`, inCookie ? {} : { refresh_token: (await signedIn(host)).refreshToken }),
    [`post ${base}/password/first`]: async (host) => {
      const person = await signedIn(host)
      await host
        .knex('auth_users')
        .where({ id: person.userId })
        .update({ hashed_password: `!${'a'.repeat(43)}`, password_set_at: null })
      return post(host, `${base}/password/first`, { new_password: otherPassword }, bearerOf(person))
    },
    [`post ${base}/password-change`]: async (host) =>
      post(host, `${base}/password-change`, { current_password: password, new_password: otherPassword }, bearerOf(await signedIn(host))),
    [`post ${base}/password-change/mfa`]: async (host) => {
      const person = await insider(host)
      return post(host, `${base}/password-change/mfa`, { code: person.app.nextCode(), new_password: otherPassword }, bearerOf(person))
    },
    [`post ${base}/sessions/revoke-others`]: async (host) =>
      post(host, `${base}/sessions/revoke-others`, {}, bearerOf(await signedIn(host))),
    [`post ${base}/email-change/confirm`]: async (host) =>
      post(host, `${base}/email-change/confirm`, { token: await mailedLink(host, '/email-change/request'), password }),
    [`post ${base}/reauthenticate`]: async (host) => post(host, `${base}/reauthenticate`, { password }, bearerOf(await signedIn(host))),
    [`post ${base}/reauthenticate/email`]: async (host) => post(host, `${base}/reauthenticate/email`, {}, bearerOf(await signedIn(host))),
    [`post ${base}/mfa/verify`]: async (host) => {
      const person = await enrolled(host)
      return post(host, `${base}/mfa/verify`, { mfa_token: await challengeOf(host, person), code: person.app.nextCode() })
    },
    [`post ${base}/mfa/confirm`]: async (host) => {
      const { person, secret } = await unconfirmed(host)
      const { authenticator } = await import('../mfa/authenticator')
      return post(host, `${base}/mfa/confirm`, { code: authenticator(secret, host.clock).code() }, bearerOf(person))
    },
  }
}

const accounts: Readonly<Record<string, Way>> = {
  'post /activation/request': (host) => post(host, '/activation/request', { email: newAddress() }),
  'post /password-reset/request': (host) => post(host, '/password-reset/request', { email: newAddress() }),
  'get /whoami': async (host) => get(host, '/whoami', bearerOf(await signedIn(host))),
  'get /cookie/whoami': (host) => get(host, '/cookie/whoami'),
  'get /client-config': (host) => get(host, '/client-config'),
  'get /me': async (host) => get(host, '/me', bearerOf(await signedIn(host))),
  'patch /me': async (host) =>
    host
      .browser()
      .patch(`${host.prefix}/me`)
      .set(bearerOf(await signedIn(host)))
      .send({ name: 'Ana' }),
  'post /email-verify/request': async (host) => post(host, '/email-verify/request', {}, bearerOf(await signedIn(host))),
  'post /email-verify/confirm': async (host) =>
    post(host, '/email-verify/confirm', { token: await mailedLink(host, '/email-verify/request') }),
  'post /email-change/request': async (host) =>
    post(host, '/email-change/request', { new_email: newAddress(), current_password: password }, bearerOf(await signedIn(host))),
  'post /security/undo': async (host) => post(host, '/security/undo', { token: await undoToken(host) }),
}

const factor: Readonly<Record<string, Way>> = {
  'post /mfa/enroll': async (host) => post(host, '/mfa/enroll', { password }, bearerOf(await signedIn(host))),
  async 'post /mfa/recovery-codes'(host) {
    const person = await insider(host)
    return post(host, '/mfa/recovery-codes', { code: person.app.nextCode() }, bearerOf(person))
  },
  async 'post /mfa/disable'(host) {
    const person = await insider(host)
    return post(host, '/mfa/disable', { password, code: person.app.nextCode() }, bearerOf(person))
  },
}

const sessions: Readonly<Record<string, Way>> = {
  'get /cookie/continue': async (host) =>
    get(host, '/cookie/continue?return_to=/orders', { Cookie: `refresh_token=${(await signedIn(host)).refreshToken}` }),
  'post /session/login': async (host) => post(host, '/session/login', { email: (await signedIn(host)).email, password }),
  async 'post /session/mfa/verify'(host) {
    const person = await enrolled(host)
    return post(host, '/session/mfa/verify', { mfa_token: await challengeOf(host, person), code: person.app.nextCode() })
  },
  async 'get /sessions'(host) {
    return get(host, '/sessions', bearerOf(await signedIn(host)))
  },
  async 'delete /sessions/{id}'(host) {
    const person = await signedIn(host)
    const { body } = await get(host, '/sessions', bearerOf(person))
    return host.browser().delete(`${host.prefix}/sessions/${body[0].id}`).set(bearerOf(person))
  },
  'get /session/me': async (host) => get(host, '/session/me', sessionOf(await device(host))),
  'get /session/list': async (host) => get(host, '/session/list', sessionOf(await device(host))),
  'post /session/logout': async (host) => post(host, '/session/logout', {}, sessionOf(await device(host))),
  async 'delete /session/{id}'(host) {
    const here = await device(host)
    const { body } = await get(host, '/session/list', sessionOf(here))
    return host.browser().delete(`${host.prefix}/session/${body[0].id}`).set(sessionOf(here))
  },
}

/** Signed in, with a browser that needs no second factor. */
async function trusting(host: LocalHost): Promise<Record<string, string>> {
  const person = await enrolled(host)
  const body = { mfa_token: await challengeOf(host, person), code: person.app.nextCode(), trust_device: true }
  await post(host, '/cookie/mfa/verify', body)
  return bearerOf(person)
}

const trustedDevices: Readonly<Record<string, Way>> = {
  'get /trusted-devices': async (host) => get(host, '/trusted-devices', await trusting(host)),
  async 'delete /trusted-devices/{id}'(host) {
    const headers = await trusting(host)
    const { body } = await get(host, '/trusted-devices', headers)
    return host.browser().delete(`${host.prefix}/trusted-devices/${body[0].id}`).set(headers)
  },
}

const passkeys: Readonly<Record<string, Way>> = {
  'post /passkeys/login/options': (host) => post(host, '/passkeys/login/options'),
  ...Object.fromEntries(
    ['', '/cookie', '/session'].map((base): [string, Way] => [
      `post ${base}/passkeys/login`,
      async (host) => logInByPasskey(host, (await passkeyOwner(host)).authenticator, `${base}/passkeys/login`),
    ]),
  ),
  ...Object.fromEntries(
    ['', '/cookie'].map((base): [string, Way] => [
      `post ${base}/reauthenticate/passkey/options`,
      async (host) => post(host, `${base}/reauthenticate/passkey/options`, {}, bearerOf(await passkeyOwner(host))),
    ]),
  ),
  async 'post /mfa/passkey/options'(host) {
    return post(host, '/mfa/passkey/options', { mfa_token: await challengeOf(host, await ownerWithFactor(host)) })
  },
  'post /signup/passkey/options': (host) => post(host, '/signup/passkey/options', { email: newAddress() }),
  'post /passkeys/register/options': async (host) => post(host, '/passkeys/register/options', {}, bearerOf(await passkeyOwner(host))),
  'post /passkeys/register': async (host) => register(host, await signedIn(host), newAuthenticator()),
  'get /passkeys': async (host) => get(host, '/passkeys', bearerOf(await passkeyOwner(host))),
  'get /passkeys/signal': async (host) => get(host, '/passkeys/signal', bearerOf(await passkeyOwner(host))),
  async 'patch /passkeys/{id}'(host) {
    const owner = await passkeyOwner(host)
    return host.browser().patch(`${host.prefix}/passkeys/${owner.passkeyId}`).set(bearerOf(owner)).send({ name: 'A key' })
  },
  async 'delete /passkeys/{id}'(host) {
    const owner = await passkeyOwner(host)
    return host.browser().delete(`${host.prefix}/passkeys/${owner.passkeyId}`).set(bearerOf(owner))
  },
}

/** With `mfaEnabled` an administrator shows the second factor. */
async function administrator(host: LocalHost): Promise<Record<string, string>> {
  await adminOn(host) // another one: the last administrator keeps the account
  return bearerOf(await signedInAgain(host, await enrolled(host, { isAdmin: true })))
}

const administration: Readonly<Record<string, Way>> = {
  'get /admin/users': async (host) => get(host, '/admin/users?limit=2&email__endswith=test', await administrator(host)),
  'get /admin/users/{id}': async (host) => get(host, `/admin/users/${(await signedIn(host)).userId}`, await administrator(host)),
  'patch /admin/users/{id}': async (host) =>
    host
      .browser()
      .patch(`${host.prefix}/admin/users/${(await signedIn(host)).userId}`)
      .set(await administrator(host))
      .send({ name: 'Another Name' }),
  ...Object.fromEntries(
    actions.map((action): [string, Way] => [
      `post /admin/users/{id}/${action}`,
      async (host) => post(host, `/admin/users/${(await signedIn(host)).userId}/${action}`, {}, await administrator(host)),
    ]),
  ),
}

async function redeemInvitation(host: LocalHost, path: string) {
  const { token } = await host.auth.service.invitations.create()
  return post(host, path, { token }, bearerOf(await signedIn(host)))
}

const deletion: Readonly<Record<string, Way>> = {
  'post /account/delete': async (host) => post(host, '/account/delete', {}, bearerOf(await signedIn(host))),
  'post /cookie/account/delete': async (host) => post(host, '/cookie/account/delete', {}, bearerOf(await signedIn(host))),
  'post /account/restore': async (host) => {
    const person = await signedIn(host)
    await post(host, '/account/delete', {}, bearerOf(person))
    return post(host, '/account/restore', { token: tokenOf(await host.mails.next({ kind: 'account_deletion', to: person.email })) })
  },
  'get /account/export': async (host) => get(host, '/account/export', bearerOf(await signedIn(host))),
  'delete /admin/users/{id}': async (host) =>
    host
      .browser()
      .delete(`${host.prefix}/admin/users/${(await signedIn(host)).userId}`)
      .set(await administrator(host)),
}

const invitations: Readonly<Record<string, Way>> = {
  'post /invitations/redeem': (host) => redeemInvitation(host, '/invitations/redeem'),
  'post /cookie/invitations/redeem': (host) => redeemInvitation(host, '/cookie/invitations/redeem'),
  'get /admin/invitations': async (host) => {
    await host.auth.service.invitations.create({ data: { team: 'a' } })
    return get(host, '/admin/invitations?limit=2', await administrator(host))
  },
  'post /admin/invitations': async (host) => post(host, '/admin/invitations', { data: 'any', uses: 2 }, await administrator(host)),
  'delete /admin/invitations/{id}': async (host) => {
    const { id } = await host.auth.service.invitations.create()
    return host
      .browser()
      .delete(`${host.prefix}/admin/invitations/${id}`)
      .set(await administrator(host))
  },
  'post /admin/invitations/{id}/resend': async (host) => {
    const { id } = await host.auth.service.invitations.create({ email: newAddress() })
    return post(host, `/admin/invitations/${id}/resend`, {}, await administrator(host))
  },
}

/** A login by password that owes a new password, or a factor; with `isUnknown`, a code for the device first. */
async function owes(host: LocalHost, task: 'new_password' | 'second_factor', isUnknown: boolean) {
  const changes = task === 'new_password' ? { passwordExpiredAt: new Date(0) } : { name: 'owes a factor' }
  const { email } = await person(host, { ...changes, emailVerifiedAt: new Date(0) })
  const { body } = await post(host, '/login', { email, password })
  const device = async () => ({ task_token: body.task_token, code: (await host.mails.next({ kind: 'device_code', to: email })).code })
  if (isUnknown) return { task_token: body.task_token, device }
  const { body: next } = await post(host, '/tasks/device', await device())
  return { task_token: next.task_token, device }
}

function tasks(base: '' | '/cookie' | '/session'): Record<string, Way> {
  const send = (host: LocalHost, path: string, body: object) => post(host, `${base}/tasks/${path}`, body)
  return {
    [`post ${base}/tasks/device`]: async (host) => send(host, 'device', await (await owes(host, 'new_password', true)).device()),
    [`post ${base}/tasks/device/resend`]: async (host) =>
      send(host, 'device/resend', { task_token: (await owes(host, 'new_password', true)).task_token }),
    [`post ${base}/tasks/new-password`]: async (host) =>
      send(host, 'new-password', { task_token: (await owes(host, 'new_password', false)).task_token, new_password: otherPassword }),
    [`post ${base}/tasks/second-factor/enroll`]: async (host) =>
      send(host, 'second-factor/enroll', { task_token: (await owes(host, 'second_factor', false)).task_token }),
    [`post ${base}/tasks/second-factor/confirm`]: async (host) => {
      const { task_token } = await owes(host, 'second_factor', false)
      const { body } = await send(host, 'second-factor/enroll', { task_token })
      return send(host, 'second-factor/confirm', { task_token, code: authenticator(body.secret, host.clock).code() })
    },
  }
}

/** Of every operation there is. */
export const ways: Readonly<Record<string, Way>> = {
  ...social,
  ...delivered(''),
  ...delivered('/cookie'),
  ...tasks(''),
  ...tasks('/cookie'),
  ...tasks('/session'),
  ...accounts,
  ...factor,
  ...trustedDevices,
  ...passkeys,
  ...sessions,
  ...administration,
  ...invitations,
  ...deletion,
  'post /admin/users/{id}/expire-password': async (host) =>
    post(host, `/admin/users/${(await signedIn(host)).userId}/expire-password`, {}, await administrator(host)),
  'get /.well-known/oauth-authorization-server': (host) => get(host, '/.well-known/oauth-authorization-server'),
  'get /.well-known/openid-configuration': (host) => get(host, '/.well-known/openid-configuration'),
  'get /.well-known/jwks.json': (host) => get(host, '/.well-known/jwks.json'),
  'get /openapi.json': (host) => get(host, '/openapi.json'),
}
