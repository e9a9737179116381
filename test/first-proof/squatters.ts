import { createKnexStore } from '../../src'
import { bearerOf, type LocalHost, newAddress, password, post } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { setCookieOf, signIn } from '../support/app'
import { tokenOf } from '../support/mailbox'

/** What the squatter holds: each attempt says whether it still opens something. */
export type Held = Record<string, (host: LocalHost) => Promise<boolean>>

export interface Squat {
  email: string
  /** Null: the squatter could not know it (a pending account that a later signup replaced). */
  userId: string
  held: Held
}

export type Squatter = (host: LocalHost) => Promise<Squat>

export const squattersPassword = password
const in200 = async (request: PromiseLike<{ status: number }>) => (await request).status < 300

const logsIn = (email: string): Held => ({
  'the password': async (host) => in200(post(host, '/login', { email, password: squattersPassword })),
})

/** Born active, and never proven. */
async function registered(host: LocalHost, email = newAddress()): Promise<Squat & { token: string; refreshToken: string }> {
  const { body, text } = await post(host, '/signup', { email, password: squattersPassword, name: 'Not The Owner' })
  if (!body.access_token) throw new Error(`the squatter is not in: ${text}`)
  const bearer = bearerOf({ token: body.access_token })
  const credentialRoutes = {
    'the access token, to enroll a factor': (host: LocalHost) => in200(post(host, '/mfa/enroll', {}, bearer)),
    'the access token, to link a provider': (host: LocalHost) => in200(post(host, '/oauth/acme/link', {}, bearer)),
    'the access token, to set a password': (host: LocalHost) =>
      in200(post(host, '/password/first', { new_password: 'the squatter came back' }, bearer)),
    'the access token, to change the password': (host: LocalHost) =>
      in200(post(host, '/password-change', { current_password: squattersPassword, new_password: 'the squatter came back' }, bearer)),
  }
  const held: Held = {
    ...logsIn(email),
    ...credentialRoutes,
    'the refresh token': (host) => in200(post(host, '/refresh', { refresh_token: body.refresh_token })),
  }
  return { email, userId: body.user_id, held, token: body.access_token, refreshToken: body.refresh_token }
}

export const activeSquatters: Record<string, Squatter> = {
  'signs up and keeps the session': (host) => registered(host),
  async 'keeps a refreshed session'(host) {
    const squat = await registered(host)
    const { body } = await post(host, '/refresh', { refresh_token: squat.refreshToken })
    return {
      ...squat,
      held: { ...squat.held, 'the newer token': (host) => in200(post(host, '/refresh', { refresh_token: body.refresh_token })) },
    }
  },
  async 'keeps a server-side session'(host) {
    const squat = await registered(host)
    const login = await post(host, '/session/login', { email: squat.email, password: squattersPassword })
    const cookie = setCookieOf(login, 'auth_session')?.value ?? ''
    return {
      ...squat,
      held: { ...squat.held, 'the session cookie': async (host) => (await host.auth.service.findSession(cookie)) !== null },
    }
  },
  async 'links an identity of another address'(host) {
    const squat = await registered(host)
    const trojan = newPerson()
    await addIdentity(host.knex, squat.userId, { provider: 'attic', subject: trojan.sub, email: trojan.email, emailVerified: true })
    return { ...squat, held: { ...squat.held, 'the identity': leadsTo(squat.userId, trojan) } }
  },
  async 'links an identity that claims the address unverified'(host) {
    const squat = await registered(host)
    const trojan = newPerson({ email: squat.email, email_verified: false })
    await addIdentity(host.knex, squat.userId, { provider: 'attic', subject: trojan.sub, email: squat.email, emailVerified: null })
    return { ...squat, held: { ...squat.held, 'the identity': leadsTo(squat.userId, trojan) } }
  },
  async 'comes by a provider that verifies nothing'(host) {
    const trojan = newPerson({ email_verified: false })
    const { body } = await signIn(host, host.browser(), { key: 'attic', profile: trojan })
    // The identity itself stays: an account keeps what it was created with (25.9.1).
    const held = {
      'the refresh token': (host: LocalHost) => in200(post(host, '/refresh', { refresh_token: body.refresh_token })),
      'the access token, to set a password': (host: LocalHost) =>
        in200(post(host, '/password/first', { new_password: squattersPassword }, bearerOf({ token: body.access_token }))),
    }
    return { email: trojan.email, userId: body.user_id, held }
  },
  async 'enrolls a factor and keeps a challenge'(host) {
    const squat = await registered(host)
    const { secret, recoveryCodes } = await host.auth.service.enrollTotp(squat.userId)
    const app = authenticator(secret, host.clock)
    await host.auth.service.confirmTotp({ userId: squat.userId, amr: ['pwd'], code: app.code() })
    const challenge = await host.auth.service.logIn({ email: squat.email, password: squattersPassword })
    const mfaToken = challenge.kind === 'challenge' ? challenge.mfaToken : ''
    const held = {
      'the challenge and the factor': (host: LocalHost) => in200(post(host, '/mfa/verify', { mfa_token: mfaToken, code: app.nextCode() })),
      'a recovery code': (host: LocalHost) => in200(post(host, '/mfa/verify', { mfa_token: mfaToken, code: recoveryCodes[0] })),
    }
    return { ...squat, held: { ...squat.held, ...held } }
  },
  async 'begins a change of address'(host) {
    const squat = await registered(host)
    const own = newAddress()
    const { userId } = squat
    await createKnexStore({ knex: host.knex }).userTokens.insert(await changeRow(host, userId, own))
    const held = {
      'the open change of address': (host: LocalHost) =>
        in200(post(host, '/email-change/confirm', { token: changeToken, password: squattersPassword }, bearerOf(squat))),
    }
    return { ...squat, held: { ...squat.held, ...held } }
  },
}

let changeToken = ''
async function changeRow(host: LocalHost, userId: string, payload: string) {
  const { hashOpaqueToken, newOpaqueToken } = await import('../../src/core/opaque-token')
  changeToken = newOpaqueToken()
  const createdAt = host.clock.now()
  const expiresAt = new Date(createdAt.getTime() + 3_600_000)
  return {
    userId,
    tokenHash: hashOpaqueToken(changeToken),
    purpose: 'EMAIL_CHANGE' as const,
    payload: `- - ${payload}`,
    expiresAt,
    usedAt: null,
    createdAt,
  }
}

function leadsTo(userId: string, profile: ReturnType<typeof newPerson>): (host: LocalHost) => Promise<boolean> {
  return async (host) => (await signIn(host, host.browser(), { key: 'attic', profile })).body.user_id === userId
}

export interface PendingSquat extends Squat {
  /** The newest link that the owner's mailbox has. */
  link: string
}

const signsUp = (host: LocalHost, email: string, chosen: string) => post(host, '/signup', { email, password: chosen })
const newestLink = async (host: LocalHost, email: string) => tokenOf(await host.mails.next({ kind: 'activation', to: email }))

async function waiting(host: LocalHost, email = newAddress()): Promise<PendingSquat & { signupToken: string }> {
  const { body } = await signsUp(host, email, squattersPassword)
  const link = await newestLink(host, email)
  const user = await createKnexStore({ knex: host.knex }).users.findByEmail(email)
  return { email, userId: user?.id ?? '', link, held: logsIn(email), signupToken: body.signup_token }
}

export const ownersPassword = 'the owner chose this one'

export const pendingSquatters: Record<string, (host: LocalHost) => Promise<PendingSquat>> = {
  'signs up and waits': (host) => waiting(host),
  async 'signs up after the owner'(host) {
    const email = newAddress()
    await signsUp(host, email, ownersPassword)
    await newestLink(host, email)
    return waiting(host, email)
  },
  async 'signs up before the owner and again after'(host) {
    const { email } = await waiting(host)
    await signsUp(host, email, ownersPassword)
    await newestLink(host, email)
    return waiting(host, email)
  },
  async 'has another link mailed'(host) {
    const squat = await waiting(host)
    await post(host, '/activation/request', { email: squat.email })
    return { ...squat, link: await newestLink(host, squat.email) }
  },
  async 'says that the password was forgotten'(host) {
    const squat = await waiting(host)
    await post(host, '/password-reset/request', { email: squat.email })
    return { ...squat, link: await newestLink(host, squat.email) }
  },
  async 'signed up, and the owner says that the password was forgotten'(host) {
    const squat = await waiting(host)
    await post(host, '/password-reset/request', { email: squat.email })
    const link = await newestLink(host, squat.email)
    return { ...squat, link }
  },
}
