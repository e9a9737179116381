import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { ask, loginTemplate } from '../email-login/people'
import { type LocalHost, newAddress, otherPassword, password, pending, post, resetLink, userOf } from '../local/people'
import { enrolled } from '../mfa/people'
import { appSettings, browse, exchange, nativeApp } from '../oauth-code/apps'
import { loginOptions, passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { change, codeFor, expired, onTasks, type Person, person, throughFactor } from './people'

/** Owes everything that an account can owe. */
const everything: Partial<UserRecord> = { ...expired, isAdmin: true, name: 'asked' }

interface Way {
  /** Signs in, with an account that owes everything. */
  readonly enter: (host: LocalHost) => Promise<{ who: Person; response: supertest.Response }>
  readonly owes: readonly string[]
  readonly amr: readonly string[]
  readonly status?: 201
}

const factorAndTerms = ['second_factor', 'terms_of_use']

/** Every way to log in. */
const ways: Readonly<Record<string, Way>> = {
  'a password': {
    enter: async (host) => {
      const who = await person(host, everything)
      return { who, response: await post(host, '/login', { email: who.email, password }) }
    },
    owes: ['device', 'new_password', ...factorAndTerms],
    amr: ['pwd', 'email', 'otp'],
  },
  'a password and a code of the factor': {
    enter: async (host) => {
      const who = await enrolled(host, { emailVerifiedAt: new Date(0) })
      await change(host, who, everything)
      const { body } = await post(host, '/login', { email: who.email, password })
      return { who, response: await post(host, '/mfa/verify', { mfa_token: body.mfa_token, code: who.app.nextCode() }) }
    },
    owes: ['new_password', 'terms_of_use'],
    amr: ['pwd', 'otp'],
  },
  'a passkey': {
    enter: async (host) => {
      const who = await passkeyOwner(host)
      await change(host, who, everything)
      const options = await loginOptions(host)
      const proof = { credential: who.authenticator.get(options), challenge_token: options.challenge_token }
      return { who, response: await post(host, '/passkeys/login', proof) }
    },
    owes: ['terms_of_use'],
    amr: ['passkey'],
  },
  'a mailed link': {
    enter: async (host) => {
      const who = await person(host, everything)
      return { who, response: await post(host, '/email-login/confirm', { token: (await ask(host, who.email)).token }) }
    },
    owes: factorAndTerms,
    amr: ['email', 'otp'],
  },
  'a reset': {
    enter: async (host) => {
      const who = await person(host, everything)
      const token = await resetLink(host, who.email)
      return { who, response: await post(host, '/password-reset/confirm', { token, new_password: otherPassword }) }
    },
    owes: factorAndTerms,
    amr: ['email', 'otp'],
  },
  'an activation': {
    enter: async (host) => {
      const { link: token, ...who } = await pending(host, { name: 'asked' })
      await change(host, who, { isAdmin: true })
      return { who, response: await post(host, '/activate', { token, password }) }
    },
    owes: factorAndTerms,
    amr: ['email', 'otp'],
  },
  'a provider': {
    enter: async (host) => {
      const who = await person(host, everything)
      const profile = newPerson()
      await addIdentity(host.knex, who.userId, { subject: String(profile['sub']) })
      return { who, response: await signIn(host, host.browser(), { profile }) }
    },
    owes: factorAndTerms,
    amr: ['ext', 'otp'],
  },
  'a new account by a provider': {
    enter: async (host) => {
      const profile = newPerson({ name: 'asked' })
      const response = await signIn(host, host.browser(), { profile })
      const { id: userId, email } = await userOf(host, profile.email)
      return { who: { userId, email }, response }
    },
    owes: ['terms_of_use'],
    amr: ['ext'],
  },
  'a token in hand': {
    enter: async (host) => {
      const who = await person(host, everything)
      const profile = newPerson()
      await addIdentity(host.knex, who.userId, { subject: String(profile['sub']) })
      return { who, response: await post(host, '/oauth/corp/token', { access_token: host.provider.issueAccessToken({ profile }) }) }
    },
    owes: factorAndTerms,
    amr: ['ext', 'otp'],
  },
  'the code of an app': {
    enter: async (host) => {
      const who = await person(host, everything)
      const profile = newPerson()
      await addIdentity(host.knex, who.userId, { subject: String(profile['sub']) })
      return { who, response: await exchange(host, await browse(host, { redirectTo: nativeApp, profile })) }
    },
    owes: factorAndTerms,
    amr: ['ext', 'otp'],
  },
  'a sign-up': {
    enter: async (host) => {
      const email = newAddress()
      const response = await post(host, '/signup', { email, password, name: 'asked' })
      return { who: { email, userId: response.body.user_id }, response }
    },
    owes: ['terms_of_use'],
    amr: ['pwd'],
    status: 201,
  },
}

/** Does one task. */
const steps: Readonly<Record<string, (host: LocalHost, who: Person, task_token: string) => Promise<supertest.Response>>> = {
  device: async (host, who, task_token) => post(host, '/tasks/device', { task_token, code: await codeFor(host, who) }),
  new_password: (host, _, task_token) => post(host, '/tasks/new-password', { task_token, new_password: 'a further choice of words' }),
  second_factor: (host, _, task_token) => throughFactor(host, task_token),
  terms_of_use: async (host, _, task_token) => post(host, '/tasks/terms-of-use', { task_token, accept: true }),
}

describe.each(await databases())('the tasks of each way to log in on $name', (database) => {
  const { start } = onTasks(database)
  const settings = { emailLogin: 'both', ...loginTemplate, ...passkeySettings, ...appSettings } as const

  test.each(Object.entries(ways))(
    '%s owes its tasks in order, and only then a session begins',
    async (name, { enter, owes, amr, status = 200 }) => {
      const corp = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
      const host = await start({ settings: { ...settings, autoActivate: name === 'a sign-up' }, providers: { corp } })
      const events: string[] = []
      const { who, response } = await enter(host)
      for (const event of ['login', 'task.required', 'task.done'] as const) host.auth.events.on(event, () => events.push(event))
      expect([response.status, response.body.tasks_required]).toEqual([status, owes])
      expect(response.body).toMatchObject({
        user_id: who.userId,
        access_token: null,
        refresh_token: null,
        mfa_required: false,
        mfa_token: null,
      })
      const sessions = () => host.knex('auth_sessions').where({ user_id: who.userId, revoked_at: null }).select('id', 'amr')
      const before = new Set((await sessions()).map(({ id }) => id))
      let { body } = response
      for (const task of owes) {
        expect((await sessions()).filter(({ id }) => !before.has(id))).toEqual([])
        const answer = await steps[task]?.(host, who, body.task_token)
        expect(answer?.status, answer?.text).toBe(200)
        body = answer?.body
      }
      expect(body).toMatchObject({ tasks_required: [], task_token: null, access_token: expect.any(String) })
      const begun = (await sessions()).filter(({ id }) => !before.has(id))
      expect(begun.map(({ amr }) => amr)).toEqual([amr.join(' ')])
      expect(events).toEqual([...owes.map(() => 'task.done'), 'login'])
    },
  )
})
