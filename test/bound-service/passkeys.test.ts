import type { Request } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type BoundService, errorHandler, type PasskeyProof, type PublicPasskey } from '../../src'
import { type LocalHost, newAddress, otherPassword, password, userOf } from '../local/people'
import { authenticator as authenticatorApp } from '../mfa/authenticator'
import { age, logIn, newAuthenticator, onPasskeys, withFactors } from '../passkeys/people'
import { member } from '../server-session/devices'
import { setCookies } from '../social/redirect-steps'
import { cookiesAfter } from '../support/cookie-jar'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn } = onPasskeys(sqlite)

type Deed = (bound: BoundService) => Promise<unknown>

describe.each(['both', 'session'] as const)('auth.with(req, res) and passkeys, in delivery %s', (tokenDelivery) => {
  let deed: Deed = async () => null
  const start = () =>
    startOn({
      settings: { ...withFactors, tokenDelivery, signupWith: ['password', 'passkey'] },
      options: { throttle: { mail: false, routes: false } },
      host(app, auth) {
        app.post('/form', async (req: Request, res, next) => {
          try {
            res.json({ outcome: (await deed(auth.with(req, res))) ?? null })
          } catch (error) {
            next(error)
          }
        })
        app.use(errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
      },
    })
  const submit = (host: LocalHost, next: Deed, cookie = '') => {
    deed = next
    return supertest(host.app)
      .post('/form')
      .set(cookie ? { Cookie: cookie } : {})
  }
  /** What the person's browser sends after this answer. */
  const cookiesOf = (response: supertest.Response) => cookiesAfter(response, '/form')

  test('a person signs up with a passkey, and activates the account in another browser with it', async () => {
    const host = await start()
    const [email, authenticator] = [newAddress(), newAuthenticator()]
    const begun = (await submit(host, (bound) => bound.passkeySignupOptions({ email, name: 'Ana' }))).body.outcome
    const made = { email, name: 'Ana', credential: authenticator.create(begun.options), challenge: begun.challenge }
    const signedUp = await submit(host, (bound) => bound.signUpWithPasskey(made))
    expect(signedUp.body.outcome).toEqual({ userId: expect.any(String), activationRequired: true, activationUrl: null })
    expect(setCookies(signedUp).map((line) => line.split('=')[0])).toEqual(['signup_binding'])
    const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))

    const options = (await submit(host, (bound) => bound.passkeyLoginOptions())).body.outcome
    const shown = { credential: authenticator.get(options.options), challenge: options.challenge }
    const activated = (await submit(host, (bound) => bound.activate(link, shown))).body.outcome
    expect(activated).toMatchObject({ kind: 'session', userId: (await userOf(host, email)).id })
    expect(activated.passwordRequired).toBe(undefined)
    expect((await logIn(host, authenticator, tokenDelivery === 'both' ? '/session/passkeys/login' : '/passkeys/login')).status).toBe(200)
  })

  test('a person adds a passkey, signs in with it, confirms a change with it, and removes it', async () => {
    const host = await start()
    const { email, userId } = await member(host)
    const authenticator = newAuthenticator()
    const first = cookiesOf(await submit(host, (bound) => bound.logIn({ email, password })))

    const begun = (await submit(host, (bound) => bound.passkeyRegistrationOptions(), first)).body.outcome
    expect(begun).toEqual({ options: expect.objectContaining({ attestation: 'none' }), challenge: expect.any(String) })
    const added = { credential: authenticator.create(begun.options), challenge: begun.challenge, name: 'phone' }
    const { id }: PublicPasskey = (await submit(host, (bound) => bound.registerPasskey(added), first)).body.outcome
    const renamed = await submit(host, (bound) => bound.renamePasskey(id, 'the phone'), first)
    expect(renamed.body.outcome).toMatchObject({ id, name: 'the phone' })
    expect((await submit(host, (bound) => bound.listPasskeys(), first)).body.outcome).toEqual([renamed.body.outcome])
    await age(host, id)

    const options = (await submit(host, (bound) => bound.passkeyLoginOptions())).body.outcome
    const presented = { credential: authenticator.get(options.options), challenge: options.challenge }
    const login = await submit(host, (bound) => bound.logInWithPasskey({ ...presented, remember: false }))
    expect(login.body.outcome).toMatchObject({ kind: 'session', userId, amr: ['passkey'] })
    expect(JSON.stringify(login.body)).not.toMatch(/(access|refresh|session)Token"/)

    const proof = async (presented = cookiesOf(login)): Promise<PasskeyProof> => {
      const { body } = await submit(host, (bound) => bound.passkeyStepOptions(), presented)
      return { credential: authenticator.get(body.outcome.options), challenge: body.outcome.challenge }
    }
    const change = { currentPassword: password, newPassword: otherPassword, ...(await proof()) }
    const changed = await submit(host, (bound) => bound.changePassword(change), cookiesOf(login))
    expect(changed.body).toEqual({ outcome: null })
    const cookies = tokenDelivery === 'session' ? cookiesOf(changed) : cookiesOf(login) // the cookie of the session has a new value
    const again = await submit(host, (bound) => bound.changePassword({ ...change, currentPassword: otherPassword }), cookies)
    expect([again.status, again.body.code]).toEqual([401, 'PASSKEY_REJECTED'])
    const another = await proof(cookies)
    const fresh = await submit(host, (bound) => bound.reauthenticate(another), cookies)
    expect(fresh.body.outcome).toMatchObject({ kind: 'session', amr: ['passkey'] })
    expect((await submit(host, (bound) => bound.removePasskey(id), cookiesOf(fresh))).body).toEqual({ outcome: null })
    expect(await host.auth.service.listPasskeys(userId)).toEqual([])
  })

  test('a passkey takes the second step, and the place of a code', async () => {
    const host = await start()
    const { email, userId } = await member(host)
    const authenticator = newAuthenticator()
    const { service } = host.auth
    const begun = await service.passkeyRegistrationOptions({ userId })
    await age(
      host,
      (await service.registerPasskey({ userId, credential: authenticator.create(begun.options), challenge: begun.challenge })).id,
    )
    const { secret } = await service.enrollTotp(userId)
    await service.confirmTotp({ userId, code: authenticatorApp(secret, host.clock).code() })

    const { mfaToken } = (await submit(host, (bound) => bound.logIn({ email, password }))).body.outcome
    const step = (await submit(host, (bound) => bound.passkeyStepOptions({ mfaToken }))).body.outcome
    const presented = { credential: authenticator.get(step.options), challenge: step.challenge }
    const login = await submit(host, (bound) => bound.verifyMfa({ mfaToken, ...presented }))
    expect(login.body.outcome).toMatchObject({ kind: 'session', userId, amr: ['pwd', 'passkey'] })

    const options = (await submit(host, (bound) => bound.passkeyStepOptions(), cookiesOf(login))).body.outcome
    const proof = { credential: authenticator.get(options.options), challenge: options.challenge }
    const codes = await submit(host, (bound) => bound.regenerateRecoveryCodes(proof), cookiesOf(login))
    expect(codes.body.outcome).toHaveLength(10)
  })
})
