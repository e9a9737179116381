import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { bearerOf, type LocalHost, openAs, otherPassword, password, post, sha256 } from '../local/people'
import { authenticator as authenticatorApp } from '../mfa/authenticator'
import { addIdentity, userById } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { tokenOf } from '../support/mailbox'
import { undo } from '../undo/people'
import {
  age,
  codeOf,
  logIn,
  newAuthenticator,
  onPasskeys,
  ownerWithFactor,
  type PasskeyOwner,
  passkeyOwner,
  presented,
  rejected,
  rowsOf,
  withFactors,
} from './people'

const optionsPath = '/reauthenticate/passkey/options'
type Proof = Partial<Awaited<ReturnType<typeof presented>>> & { code?: string }

interface Change {
  /** The account has an authenticator app, too. */
  hasFactor?: true
  prepare?(host: LocalHost, owner: PasskeyOwner): Promise<unknown>
  /** The request that shows the passkey. */
  ask(host: LocalHost, owner: PasskeyOwner, proof: Proof): supertest.Test
  /** What makes the change, where that is another request. */
  finish?(host: LocalHost, owner: PasskeyOwner, answer: supertest.Response): Promise<unknown>
  /** An undo of an earlier change ends every password and goes back to the address of then. */
  isUndone?: true
  /** The change was made, and is still there. */
  isMade(host: LocalHost, owner: PasskeyOwner): Promise<boolean>
}

const instant = ({ knex, clock }: LocalHost) => dialectOf(knex).instantToColumn(clock.now())
const asOwner = (host: LocalHost, owner: PasskeyOwner, path: string, body: object) => post(host, path, body, bearerOf(owner))
const hasPassword = async (host: LocalHost, { userId }: PasskeyOwner, text: string) =>
  host.hasher.verify((await userById(host.knex, userId)).hashedPassword, text)
const countOf = async (host: LocalHost, table: string, userId: string) => (await host.knex(table).where({ user_id: userId })).length

async function confirmEnrolment(host: LocalHost, owner: PasskeyOwner, { body }: supertest.Response) {
  await asOwner(host, owner, '/mfa/confirm', { code: authenticatorApp(body.secret, host.clock).code() }).expect(200)
}
const enrolment = {
  ask: (host, owner, proof) => asOwner(host, owner, '/mfa/enroll', proof),
  finish: confirmEnrolment,
  isMade: async (host, { userId }) => (await userById(host.knex, userId)).totpEnabledAt?.getTime() === host.clock.now().getTime(),
} satisfies Change

/** Every route of 24.1 that changes the account of the person who asks. */
const changes: Record<string, Change> = {
  'POST /password-change/mfa': {
    isUndone: true,
    ask: (host, owner, proof) => asOwner(host, owner, '/password-change/mfa', { new_password: otherPassword, ...proof }),
    isMade: (host, owner) => hasPassword(host, owner, otherPassword),
  },
  'POST /password-change': {
    isUndone: true,
    ask: (host, owner, proof) =>
      asOwner(host, owner, '/password-change', { current_password: password, new_password: otherPassword, ...proof }),
    isMade: (host, owner) => hasPassword(host, owner, otherPassword),
  },
  'POST /password/first': {
    isUndone: true,
    prepare: (host, { userId }) =>
      host
        .knex('auth_users')
        .where({ id: userId })
        .update({ hashed_password: `!${'a'.repeat(43)}`, password_set_at: null }),
    ask: (host, owner, proof) => asOwner(host, owner, '/password/first', { new_password: otherPassword, ...proof }),
    isMade: (host, owner) => hasPassword(host, owner, otherPassword),
  },
  'POST /mfa/enroll': enrolment,
  'POST /mfa/enroll over an active factor': { ...enrolment, hasFactor: true },
  'POST /mfa/disable': {
    hasFactor: true,
    ask: (host, owner, proof) => asOwner(host, owner, '/mfa/disable', { password, ...proof }),
    isMade: async (host, { userId }) => (await userById(host.knex, userId)).totpEnabledAt === null,
  },
  'POST /mfa/recovery-codes': {
    hasFactor: true,
    ask: (host, owner, proof) => asOwner(host, owner, '/mfa/recovery-codes', proof),
    isMade: async (host, { userId }) => (await countOf(host, 'auth_recovery_codes', userId)) === 10,
  },
  'POST /passkeys/register/options': {
    ask: (host, owner, proof) => asOwner(host, owner, '/passkeys/register/options', proof),
    finish: (host, owner, { body }) =>
      asOwner(host, owner, '/passkeys/register', {
        credential: newAuthenticator().create(body),
        challenge_token: body.challenge_token,
        name: 'final',
      }).expect(201),
    isMade: async (host, { userId }) => (await host.knex('auth_passkeys').where({ user_id: userId, name: 'final' })).length === 1,
  },
  'DELETE /passkeys/:id': {
    ask: (host, owner, proof) => host.browser().delete(`${host.prefix}/passkeys/${owner.passkeyId}`).set(bearerOf(owner)).send(proof),
    isMade: async (host, { passkeyId }) => (await host.knex('auth_passkeys').where({ id: passkeyId })).length === 0,
  },
  'POST /oauth/:provider/link': {
    ask: (host, owner, proof) =>
      asOwner(host, owner, '/oauth/corp/link', { access_token: host.provider.issueAccessToken({ profile: newPerson() }), ...proof }),
    isMade: async (host, { userId }) => (await countOf(host, 'auth_identities', userId)) === 1,
  },
  'POST /oauth/accounts/unlink': {
    prepare: (host, { userId }) => addIdentity(host.knex, userId),
    ask: (host, owner, proof) => asOwner(host, owner, '/oauth/accounts/unlink', { provider: 'corp', ...proof }),
    isMade: async (host, { userId }) => (await countOf(host, 'auth_identities', userId)) === 0,
  },
  'POST /email-change/request': {
    isUndone: true,
    ask: (host, owner, proof) => asOwner(host, owner, '/email-change/request', { new_email: `new-${owner.email}`, ...proof }),
    async finish(host, owner) {
      const mail = await host.mails.next({ kind: 'email_change', to: `new-${owner.email}` })
      await asOwner(host, owner, '/email-change/confirm', { token: tokenOf(mail) }).expect(200)
    },
    isMade: async (host, { userId, email }) => (await userById(host.knex, userId)).email !== email,
  },
}

describe.each(await databases())('24.6: a passkey of yesterday makes a change final, on $name', (database) => {
  const factory = onPasskeys(database)
  const corp = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
  const start = () => factory.start({ settings: withFactors, providers: { corp }, options: { throttle: { mail: false, links: false } } })

  const shownBy = (host: LocalHost, owner: PasskeyOwner, lies = {}) =>
    presented(host, owner.authenticator, { path: optionsPath, headers: bearerOf(owner), lies })

  /** Of another passkey, which was added before the change. */
  async function earlierLink(host: LocalHost, { userId, email }: PasskeyOwner, authenticator = newAuthenticator()): Promise<string> {
    const points = () => host.knex('auth_user_tokens').where({ user_id: userId, purpose: 'UNDO' })
    await points().delete() // of what the account was made ready with
    const begun = await host.auth.service.passkeyRegistrationOptions({ userId })
    await host.auth.service.registerPasskey({ userId, credential: authenticator.create(begun.options), challenge: begun.challenge })
    const [{ token_hash }] = await points()
    const isIts = ({ to, url }: { to: string; url: string | null }) =>
      to === email && url !== null && sha256(url.split('/').at(-1) ?? '') === token_hash
    await expect.poll(() => host.mails.mails.some(isIts)).toBe(true)
    return tokenOf(host.mails.mails.find(isIts) ?? { url: null })
  }

  async function ready(host: LocalHost, { hasFactor, prepare }: Change): Promise<PasskeyOwner> {
    const owner = hasFactor ? await ownerWithFactor(host) : await passkeyOwner(host)
    await prepare?.(host, owner)
    return owner
  }

  test.each(Object.entries(changes))('%s: no link undoes it, also none of an earlier change', async (_name, change) => {
    const host = await start()
    const owner = await ready(host, change)
    const earlier = await earlierLink(host, owner)
    const told = () => host.mails.mails.filter(({ to, text }) => to === owner.email && text.includes('cannot be undone with a link'))

    const answer = await change.ask(host, owner, await shownBy(host, owner))
    expect(answer.status, answer.text).toBeLessThan(300)
    await change.finish?.(host, owner, answer)

    await expect.poll(() => told().map(({ url }) => url)).toEqual([null])
    expect(await change.isMade(host, owner)).toBe(true)
    await undo(host, earlier).expect(200)
    expect(await change.isMade(host, owner)).toBe(!change.isUndone)
  })

  test.each(Object.entries(changes))(
    '%s: what is no good passkey of yesterday, for this session and unused, changes nothing',
    async (_name, change) => {
      const host = await start()
      const owner = await ready(host, change)
      const other = await passkeyOwner(host)
      const elsewhere = { ...owner, ...(await openAs(host, owner.userId)) }
      const used = await shownBy(host, owner)
      await asOwner(host, owner, '/reauthenticate', used).expect(200)
      const own = await shownBy(host, owner)
      const attempts: [Proof, readonly unknown[]][] = [
        [await shownBy(host, owner, { origin: 'https://evil.example' }), rejected],
        [await shownBy(host, owner, { isUserVerified: false }), rejected],
        [await shownBy(host, other), rejected],
        [await shownBy(host, elsewhere), rejected],
        [{ credential: own.credential as object }, rejected],
        [used, rejected],
        [{ ...own, code: '000000' }, [422, 'VALIDATION_ERROR']],
      ]
      const before = await rowsOf(host, owner.userId)
      for (const [proof, refusal] of attempts) expect(codeOf(await change.ask(host, owner, proof))).toEqual(refusal)
      await age(host, owner.passkeyId, 0)
      const young = await change.ask(host, owner, own)
      expect([...codeOf(young), Object.keys(young.body.details)]).toEqual([403, 'MFA_FACTOR_TOO_NEW', ['usable_at']])
      await age(host, owner.passkeyId)
      expect(await rowsOf(host, owner.userId)).toEqual(before)
      expect((await change.ask(host, owner, own)).status).toBeLessThan(300)
    },
  )

  test('what a thief’s own passkey confirmed days later goes with it', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const thiefs = newAuthenticator()
    const link = await earlierLink(host, owner, thiefs)
    host.clock.advance(2 * 86_400)
    const { body } = await logIn(host, thiefs)
    const thief = { ...owner, token: body.access_token, authenticator: thiefs }
    const begun = await asOwner(host, thief, '/mfa/enroll', await shownBy(host, thief)).expect(200)
    await confirmEnrolment(host, thief, begun)
    await undo(host, link).expect(200)
    expect((await userById(host.knex, owner.userId)).totpEnabledAt).toBeNull()
    expect(await host.knex('auth_passkeys').where({ user_id: owner.userId }).pluck('id')).toEqual([owner.passkeyId])
  })

  test('a passkey of yesterday stands in for the password also where the authenticator app is of today', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    await host
      .knex('auth_users')
      .where({ id: owner.userId })
      .update({ totp_enabled_at: instant(host) })
    const change = { new_password: otherPassword }
    const byCode = await asOwner(host, owner, '/password-change/mfa', { ...change, code: owner.app.nextCode() })
    expect(codeOf(byCode)).toEqual([403, 'MFA_FACTOR_TOO_NEW'])
    await asOwner(host, owner, '/password-change/mfa', { ...change, ...(await shownBy(host, owner)) }).expect(204)
  })

  test('a host does the same by its service, with the session that the options were for', async () => {
    const host = await start()
    const { userId, authenticator, app } = await ownerWithFactor(host)
    const { service } = host.auth
    const [session] = await service.listSessions(userId)
    const sessionId = String(session?.id)
    const proof = async (id?: string) => {
      const { options, challenge } = await service.passkeyStepOptions({ userId, sessionId: id })
      return { userId, credential: authenticator.get(options), challenge, sessionId: id }
    }
    const { userId: _, ...enrolling } = await proof(sessionId)
    await service.enrollTotp(userId, enrolling)
    expect(await service.regenerateRecoveryCodes(await proof(sessionId))).toHaveLength(10)
    await expect(service.regenerateRecoveryCodes({ ...(await proof(sessionId)), sessionId: undefined })).rejects.toMatchObject({
      code: 'PASSKEY_REJECTED',
    })
    const spent = await proof()
    await service.changePasswordWithMfa({ ...spent, newPassword: otherPassword })
    await expect(service.disableTotp({ ...spent, password: otherPassword })).rejects.toMatchObject({ code: 'PASSKEY_REJECTED' })
    await service.disableTotp({ ...(await proof()), password: otherPassword })
    expect((await userById(host.knex, userId)).totpEnabledAt).toBeNull()
    await expect(service.disableTotp({ userId, code: app.nextCode() })).rejects.toMatchObject({ code: 'MFA_NOT_ENROLLED' })
  })
})
