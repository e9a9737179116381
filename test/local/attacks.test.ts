import Joi from 'joi'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { AuthRouterOptions } from '../../src'
import { createBackground } from '../../src/core/background'
import { EmailTakenError } from '../../src/core/errors'
import { activePerson, as, password } from '../account/people'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'

const other = 'nine green bicycles uphill'
const third = 'a lamp beside seven chairs'

/** A hook of the host is asked while a link is on its way: the moment for somebody else to be faster. */
function interlude() {
  let play: (() => Promise<unknown>) | null = null
  const refusesEmailLink = async () => {
    const now = play
    play = null
    await now?.()
    return false
  }
  return {
    refusesEmailLink,
    next: (action: () => Promise<unknown>) => {
      play = action
    },
  }
}

for (const database of await databases()) {
  describe(`an account under attack, on ${database.name}`, () => {
    const start = appPerTest(database)

    test('R-060 whoever signed up with my address first is out once I prove the mailbox by "forgot my password"', async () => {
      const mails = mailbox()
      const mounted = await start({ settings: linkTemplates, options: { mailer: mails } })
      const browser = mounted.browser()
      await mounted.browser().post('/auth/signup').send({ email: 'victim@example.test', password: 'the squatter knows this' })
      const unasked = tokenOf(await mails.next({ kind: 'activation' }))

      await mounted.browser().post('/auth/signup').send({ email: 'victim@example.test', password })
      await mails.next({ kind: 'activation' })
      await browser.post('/auth/password-reset/request').send({ email: 'victim@example.test' })
      const asked = tokenOf(await mails.next({ kind: 'activation' }))
      // The squatter has another link sent: it must not bring the password back.
      await browser.post('/auth/activation/request').send({ email: 'victim@example.test' })
      const token = tokenOf(await mails.next({ kind: 'activation' }))
      expect((await browser.post('/auth/activate').send({ token: asked })).status).toBe(401)
      const activated = await browser.post('/auth/activate').send({ token })
      expect(activated.status).toBe(200)
      expect((await browser.post('/auth/activate').send({ token: unasked })).status).toBe(401)

      const logIn = (word: string) => browser.post('/auth/login').send({ email: 'victim@example.test', password: word })
      expect([(await logIn('the squatter knows this')).status, (await logIn(password)).status]).toEqual([401, 401])
      expect((await mounted.knex('auth_users').first()).password_set_at).toBeNull()
      await browser.post('/auth/password-reset/request').send({ email: 'victim@example.test' })
      const reset = tokenOf(await mails.next({ kind: 'password_reset' }))
      expect((await browser.post('/auth/password-reset/confirm').send({ token: reset, new_password: other })).status).toBe(200)
      expect((await logIn(other)).status).toBe(200)
    })

    test('a change of address that was begun with the old password does not outlive my reset', async () => {
      const mails = mailbox()
      const { refusesEmailLink, next } = interlude()
      const mounted = await start({ settings: linkTemplates, options: { mailer: mails, refusesEmailLink } })
      const person = await activePerson(mounted, mails, 'victim@example.test')
      await mounted.browser().post('/auth/password-reset/request').send({ email: person.email })
      const token = tokenOf(await mails.next({ kind: 'password_reset' }))
      const { service } = mounted.auth
      next(() => service.resetPassword({ token, newPassword: other }))

      const change = { userId: person.id, newEmail: 'attacker@example.test', currentPassword: password }
      expect(await service.requestEmailChange(change)).toBeNull()
      expect(await mounted.knex('auth_user_tokens').where({ purpose: 'EMAIL_CHANGE' })).toEqual([])
      expect((await mounted.browser().post('/auth/login').send({ email: person.email, password: other })).status).toBe(200)
    })

    test('a reset or activation link goes to no mailbox the account has left', async () => {
      const { refusesEmailLink, next } = interlude()
      const mounted = await start({ settings: { ...linkTemplates, autoActivate: true }, options: { refusesEmailLink } })
      const { service } = mounted.auth
      const [user] = await service.signUp({ email: 'old@example.test', password })
      const move = () => mounted.knex('auth_users').where({ id: user.id }).update({ email: 'new@example.test' })

      next(move)
      expect(await service.requestPasswordReset('old@example.test')).toBeNull()
      await mounted.knex('auth_users').where({ id: user.id }).update({ email: 'old@example.test', is_active: false, activated_at: null })
      next(move)
      expect(await service.requestActivation('old@example.test')).toBeNull()
      expect(await mounted.knex('auth_user_tokens')).toEqual([])
    })

    test('R-061 a banned account that has ever logged in is not pending, also where nobody wrote down its activation', async () => {
      const mounted = await start({ settings: { ...linkTemplates, autoActivate: true } })
      const { service } = mounted.auth
      const [user] = await service.signUp({ email: 'imported@example.test', password })
      await mounted.knex('auth_users').where({ id: user.id }).update({ activated_at: null })
      await service.logIn({ email: 'imported@example.test', password })
      await mounted.knex('auth_users').where({ id: user.id }).update({ is_active: false })

      expect(await service.requestActivation('imported@example.test')).toBeNull()
      expect(await service.requestPasswordReset('imported@example.test')).toBeNull()
      expect(await mounted.knex('auth_user_tokens')).toEqual([])
    })

    test('no session begins on an account that onSignup made inactive', async () => {
      const onSignup: NonNullable<AuthRouterOptions['signup']>['onSignup'] = async ({ id }, _body, store) => {
        await store.users.update(id, { isActive: false })
      }
      const mounted = await start({ settings: { autoActivate: true }, options: { signup: { onSignup } } })
      const signup = await mounted.browser().post('/auth/signup').send({ email: 'ana@example.test', password })

      expect([signup.status, signup.body.access_token, signup.body.activation_required]).toEqual([201, null, true])
      expect(await mounted.knex('auth_sessions')).toEqual([])
    })

    test('accounts that take no links get none about their address either', async () => {
      const mails = mailbox()
      const refusing = new Set<string>()
      const refusesEmailLink = ({ email }: { email: string }) => refusing.has(email)
      const mounted = await start({ settings: linkTemplates, options: { mailer: mails, refusesEmailLink } })
      const person = await activePerson(mounted, mails, 'admin@example.test')
      refusing.add(person.email)
      const before = mails.mails.length
      const change = { userId: person.id, newEmail: 'new@example.test', currentPassword: password }

      expect(await mounted.auth.service.requestEmailVerification(person.id)).toBeNull()
      expect(await mounted.auth.service.requestEmailChange(change)).toBeNull()
      expect(await mounted.knex('auth_user_tokens').whereIn('purpose', ['EMAIL_VERIFICATION', 'EMAIL_CHANGE'])).toEqual([])
      expect(mails.mails).toHaveLength(before)
    })
  })
}

describe('what a signup tells', () => {
  const start = appPerTest()

  test('T02 the answer waits neither for refusesEmailLink nor for the mail, since a taken address does not either', async () => {
    const mails = mailbox()
    const never = () => new Promise<boolean>(() => undefined)
    const mounted = await start({ settings: linkTemplates, options: { mailer: mails, refusesEmailLink: never } })

    const signup = await mounted.browser().post('/auth/signup').send({ email: 'ana@example.test', password })
    expect([signup.status, mails.mails]).toEqual([201, []])
  })

  test('a refusal of onSignup keeps its status, EMAIL_TAKEN included', async () => {
    const onSignup = () => {
      throw new EmailTakenError()
    }
    const mails = mailbox()
    const mounted = await start({ settings: linkTemplates, options: { mailer: mails, signup: { onSignup } } })

    const signup = await mounted.browser().post('/auth/signup').send({ email: 'ana@example.test', password })
    expect([signup.status, signup.body.code]).toEqual([409, 'EMAIL_TAKEN'])
    expect(await mounted.knex('auth_users')).toEqual([])
  })

  test('onSignup gets the address as it is stored, and the password under no name', async () => {
    const bodies: object[] = []
    const schema = Joi.object({ email: Joi.string(), password_again: Joi.string(), plan: Joi.string() })
    const onSignup = (_user: unknown, body: object) => void bodies.push(body)
    const mounted = await start({ options: { signup: { schema, onSignup } } })

    const body = { email: 'Ana@Example.test', password, password_again: password, plan: 'free' }
    await mounted.browser().post('/auth/signup').send(body)
    expect(bodies).toEqual([{ email: 'ana@example.test', name: null, plan: 'free' }])
  })
})

describe('what one account can take from the others', () => {
  const start = appPerTest()
  afterEach(() => vi.useRealTimers())

  test('of its own password changes at once, five are looked at', async () => {
    const mails = mailbox()
    const mounted = await start({ settings: linkTemplates, options: { mailer: mails, throttle: { routes: false } } })
    const person = await activePerson(mounted, mails, 'ana@example.test')
    const change = () =>
      mounted.browser().post('/auth/password-change').set(as(person)).send({ current_password: password, new_password: third })
    const answers = await Promise.all(Array.from({ length: 30 }, change))

    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 204)).toHaveLength(1)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(20)
  })

  test('work after answers that never ends gives its place back', async () => {
    vi.useFakeTimers()
    const logs = logTap()
    const background = createBackground(logs, { isDelayed: false })
    for (let count = 0; count < 1_000; count++) background.run('stuck', () => new Promise(() => undefined))
    expect(background.runIfRoom('late', async () => undefined)).toBe(false)

    await vi.advanceTimersByTimeAsync(40_000)
    expect(background.runIfRoom('late', async () => undefined)).toBe(true)
    expect(logs.text()).toContain('stuck')
  })
})
