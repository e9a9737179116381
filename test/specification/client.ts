import jwt from 'jsonwebtoken'
import supertest, { type Response } from 'supertest'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { newPerson } from '../social/redirect-steps'
import { type Mounted, type MountOptions, signIn } from '../support/app'

/** The settings of a host that follows the specification and changes no default: the second factor is on, links stand in the bodies. */
export const written: Omit<MountOptions, 'knex'> = { settings: mfaSettings, providers: { corp: {}, other: {} } }

/** The mount options with further settings and options. */
export function writtenWith({ settings, options, providers }: Omit<MountOptions, 'knex'>): Omit<MountOptions, 'knex'> {
  return { ...written, settings: { ...written.settings, ...settings }, ...(options && { options }), ...(providers && { providers }) }
}

export const password = 'a quiet harbour in winter'
export const newPassword = 'nine green bicycles uphill'

export interface Member {
  email: string
  userId: string
  token: string
  refreshToken: string
}

/** A client that was written from specification.md alone: JSON bodies, tokens from the body, no cookies but the state cookie. */
export function clientOf(host: Mounted) {
  let count = 0
  const post = (path: string, body: object = {}, token?: string): supertest.Test =>
    supertest(host.app)
      .post(`/auth${path}`)
      .set(token === undefined ? {} : { Authorization: `Bearer ${token}` })
      .send(body)
  const get = (path: string, token?: string): supertest.Test =>
    supertest(host.app)
      .get(`/auth${path}`)
      .set(token === undefined ? {} : { Authorization: `Bearer ${token}` })
  const newEmail = () => `person-${++count}@example.test`

  const memberOf = ({ body, text }: Response, email: string): Member => {
    if (typeof body.access_token !== 'string') throw new Error(`no session: ${text}`)
    return { email, userId: body.user_id, token: body.access_token, refreshToken: body.refresh_token }
  }
  const signUp = async (email = newEmail()): Promise<{ email: string; path: string; response: Response }> => {
    const response = await post('/signup', { email, password, name: 'Ana' })
    return { email, path: new URL(response.body.activation_url).pathname.replace('/auth', ''), response }
  }
  const member = async (): Promise<Member> => {
    const { email, path } = await signUp()
    return memberOf(await post(path), email)
  }
  const logIn = async ({ email }: { email: string }): Promise<Member> => memberOf(await post('/login', { email, password }), email)
  const social = async (profile = newPerson(), key = 'corp') => signIn(host, host.browser(), { key, profile })

  /** Enrols by the session's access token alone, as the specification's client does. */
  const enrol = async (person: Pick<Member, 'token'>) => {
    const begun = await post('/mfa/enroll', {}, person.token)
    const app = authenticator(begun.body.secret, host.clock)
    const confirmed = await post('/mfa/confirm', { code: app.code() }, person.token)
    return { app, confirmed, recoveryCodes: begun.body.recovery_codes as string[] }
  }
  const enrolled = async () => {
    const person = await member()
    const { app, recoveryCodes } = await enrol(person)
    const finished = async () => {
      const { body } = await post('/login', { email: person.email, password })
      return memberOf(await post('/mfa/verify', { mfa_token: body.mfa_token, code: app.nextCode() }), person.email)
    }
    return { ...(await finished()), app, recoveryCodes, finished }
  }
  const resetToken = async ({ email }: { email: string }) => {
    const { body } = await post('/password-reset/request', { email })
    return new URL(body.reset_url).pathname.split('/').pop() ?? ''
  }
  return { host, post, get, newEmail, signUp, member, logIn, social, enrol, enrolled, resetToken }
}

export type Client = ReturnType<typeof clientOf>

export const claimsOf = (token: string) => jwt.decode(token) as Record<string, unknown>
export const codeOf = ({ status, body }: Response) => [status, body.code]
