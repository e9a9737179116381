import { describe, expect, test } from 'vitest'
import { createKnexStore, type OAuthUser, OidcClient } from '../../src'
import { sealSecret } from '../../src/second-factor/secret-box'
import {
  bearerOf,
  type LocalHost,
  type LocalMember,
  type LocalOptions,
  newAddress,
  otherPassword,
  password,
  post,
  signedIn,
  tokenRows,
  userOf,
} from '../local/people'
import { type EnrolledMember, enrolled, onMfa, signedInAgain } from '../mfa/people'
import { addIdentity, userById } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { tokenOf } from '../support/mailbox'
import { anotherPassword, changePassword, comeBack, moveTo, undo, undoTokenOf } from './people'

const day = 86_400

for (const database of await databases()) {
  describe(database.name, () => {
    const factory = onMfa(database)
    const corp = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
    const start = (options: LocalOptions = {}) => factory.start({ providers: { corp }, ...options })

    const link = (host: LocalHost, person: Pick<LocalMember, 'token'>) =>
      post(host, '/oauth/corp/link', { access_token: host.provider.issueAccessToken({ profile: newPerson() }) }, bearerOf(person))

    type Change = (host: LocalHost) => Promise<LocalMember>
    const changes: Record<string, Change> = {
      async 'a changed password'(host) {
        const person = await signedIn(host)
        await changePassword(host, person).expect(204)
        return person
      },
      async 'a factor that is switched on'(host) {
        const person = await enrolled(host)
        return person
      },
      async 'a young factor that is switched off'(host) {
        const person = await enrolled(host, {}, { isYoung: true })
        await host.mails.next({ kind: 'notice', to: person.email })
        await post(host, '/mfa/disable', { password, code: person.app.nextCode() }, bearerOf(person)).expect(204)
        return person
      },
      async 'new recovery codes'(host) {
        const person = await enrolled(host, {}, { isYoung: true })
        await host.mails.next({ kind: 'notice', to: person.email })
        await post(host, '/mfa/recovery-codes', { code: person.app.nextCode() }, bearerOf(person)).expect(200)
        return person
      },
      async 'a linked identity'(host) {
        const person = await signedIn(host)
        await link(host, person).expect(201)
        return person
      },
      async 'an unlinked identity'(host) {
        const person = await signedIn(host)
        await addIdentity(host.knex, person.userId)
        await post(host, '/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(person)).expect(204)
        return person
      },
      async 'a changed address'(host) {
        const person = await signedIn(host)
        await moveTo(host, person, newAddress())
        return person
      },
    }

    test.each(Object.entries(changes))(
      'the notice of %s undoes it: the owner is back, and everything else has ended',
      async (_name, change) => {
        const host = await start()
        const person = await change(host)
        const token = await undoTokenOf(host, person.email)

        const { body } = await undo(host, token).expect(200)
        expect(body).toEqual({ message: 'The changes were undone.', address_restored: true })

        expect(await userOf(host, person.email)).toMatchObject({ id: person.userId, isActive: true })
        for (const tried of [password, anotherPassword, otherPassword]) {
          await post(host, '/login', { email: person.email, password: tried }).expect(401)
        }
        await post(host, '/refresh', { refresh_token: person.refreshToken }).expect(401)
        const back = await comeBack(host, person.email)
        expect(back.status).toBe(200)
      },
    )

    test('a link is used once, also by two at the same time, and a made-up one is 401', async () => {
      const host = await start()
      const person = await signedIn(host)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)

      const both = await Promise.all([undo(host, token), undo(host, token)])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
      await undo(host, token).expect(401, /INVALID_TOKEN/)
      await undo(host, 'a'.repeat(43)).expect(401, /INVALID_TOKEN/)
      await undo(host, 'short').expect(401, /INVALID_TOKEN/)
    })

    test('a link ends after undoSeconds', async () => {
      const host = await start({ settings: { undoSeconds: 3_600 } })
      const person = await signedIn(host)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      host.clock.advance(3_600)
      await undo(host, token).expect(401, /INVALID_TOKEN/)
    })

    test('with undoSeconds 0 notices carry no link, and nothing redeems one', async () => {
      const host = await start({ settings: { undoSeconds: 0 } })
      const person = await signedIn(host)
      await changePassword(host, person).expect(204)
      expect((await host.mails.next({ kind: 'notice', to: person.email })).url).toBeNull()
      expect(await tokenRows(host, person.userId)).toEqual([])
      await undo(host, 'a'.repeat(43)).expect(404)
    })

    test('the notice to an unproven address has no link: the account may be somebody else’s (X6 b)', async () => {
      const host = await start()
      const person = await signedIn(host, { emailVerifiedAt: null })
      await changePassword(host, person).expect(204)
      const mail = await host.mails.next({ kind: 'notice', to: person.email })
      expect(mail.url).toBeNull()
      expect(mail.text).not.toContain('undo')
      expect((await tokenRows(host, person.userId)).filter(({ purpose }) => purpose === 'UNDO')).toEqual([])
    })

    test('X6 (b): a squatter moves an unproven account away, and the owner of the address gets no link that would give it back', async () => {
      const host = await start()
      const squatter = await signedIn(host, { emailVerifiedAt: null })
      const own = newAddress()
      await moveTo(host, squatter, own)
      const mail = await host.mails.next({ kind: 'notice', to: squatter.email })
      expect([mail.url, mail.text.includes('/security/undo')]).toEqual([null, false])
      expect((await tokenRows(host, squatter.userId)).filter(({ purpose }) => purpose === 'UNDO')).toEqual([])

      const victim = await signedIn(host, { email: squatter.email, emailVerifiedAt: null })
      const sent = host.mails.mails.filter(({ to, kind, url }) => to === squatter.email && kind === 'notice' && url !== null)
      expect(sent).toEqual([])
      expect(await userById(host.knex, victim.userId)).toMatchObject({ email: squatter.email, isActive: true })
      await post(host, '/refresh', { refresh_token: victim.refreshToken }).expect(200)
    })

    test('a factor that a thief switched on is gone, and the one that a thief switched off by a recovery code is back', async () => {
      const host = await start()
      const young = await enrolled(host)
      await undo(host, await undoTokenOf(host, young.email)).expect(200)
      expect(await userById(host.knex, young.userId)).toMatchObject({ totpEnabledAt: null, totpSecret: null })
      expect((await comeBack(host, young.email)).body).toMatchObject({ mfa_required: false })

      const quiet = await enrolled(host)
      await host.mails.next({ kind: 'notice', to: quiet.email })
      host.clock.advance(8 * day) // the link of the switching on has ended
      const person = await signedInAgain(host, quiet)
      const before = await userById(host.knex, person.userId)
      await post(host, '/mfa/disable', { password, code: person.recoveryCodes[0] }, bearerOf(person)).expect(204)
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      const { totpSecret, totpEnabledAt } = await userById(host.knex, person.userId)
      expect({ totpSecret, totpEnabledAt }).toEqual({ totpSecret: before.totpSecret, totpEnabledAt: before.totpEnabledAt })
      const back = await comeBack(host, person.email)
      expect(back.body).toMatchObject({ mfa_required: true })
      await post(host, '/mfa/verify', { mfa_token: back.body.mfa_token, code: person.recoveryCodes[1] }).expect(401)
      host.clock.advance(60)
      await post(host, '/mfa/verify', { mfa_token: back.body.mfa_token, code: person.app.nextCode() }).expect(200)
    })

    /** Signed in again, so that the session and its token are of now. */
    const later = async (host: LocalHost, person: EnrolledMember, seconds: number) => {
      host.clock.advance(seconds)
      return signedInAgain(host, person)
    }
    const enrolledWithMail = async (host: LocalHost) => {
      const person = await enrolled(host, {}, { isYoung: true })
      return { person, enrolment: await undoTokenOf(host, person.email) }
    }

    test('an undo keeps the factor that its owner switched on more than a day before the undone change, and its recovery codes (25.4.1)', async () => {
      const host = await start()
      const { person: young, enrolment } = await enrolledWithMail(host)
      const person = await later(host, young, day + 60)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      const page = await host.browser().get(`${host.prefix}/security/undo/${token}`).expect(200)
      const says = /Two-step verification of \w+ \d+, \d{4} stays\. You did not switch it on\? Use the link in our mail of \w+ \d+, \d{4}\./
      expect(page.text).toMatch(says)
      expect((await host.browser().get(`${host.prefix}/security/undo/${token}`).set('Accept-Language', 'pt-BR')).text).toMatch(
        /A verificação em duas etapas de .* continua ativa\. Não foi você que a ativou\? Use o link no nosso e-mail de /,
      )

      await undo(host, token).expect(200)

      expect((await userById(host.knex, person.userId)).totpEnabledAt).not.toBeNull()
      const mail = await host.mails.next({ kind: 'password_reset', to: person.email })
      expect(mail.text.replaceAll(/\s+/g, ' ')).toMatch(says)
      expect(mail.text).not.toContain('recovery codes')
      const back = await post(host, '/password-reset/confirm', { token: tokenOf(mail), new_password: otherPassword })
      expect(back.body).toMatchObject({ mfa_required: true })
      await post(host, '/mfa/verify', { mfa_token: back.body.mfa_token, code: person.recoveryCodes[0] }).expect(200)
      await undo(host, enrolment).expect(200)
      expect((await userById(host.knex, person.userId)).totpEnabledAt).toBeNull()
    })

    test('a factor of less than a day before the undone change goes, as the oldest link says (25.4.1)', async () => {
      const host = await start()
      const { person: young } = await enrolledWithMail(host)
      const person = await later(host, young, day - 3_600)
      await changePassword(host, person).expect(204)
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      expect((await userById(host.knex, person.userId)).totpEnabledAt).toBeNull()
    })

    test('a factor that was switched off comes back without recovery codes, and the mail says so (25.4.1)', async () => {
      const host = await start()
      const { person: young } = await enrolledWithMail(host)
      const person = await later(host, young, day + 60)
      const before = await userById(host.knex, person.userId)
      await post(host, '/mfa/disable', { password, code: person.recoveryCodes[0] }, bearerOf(person)).expect(204)
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      const { totpSecret, totpEnabledAt } = await userById(host.knex, person.userId)
      expect({ totpSecret, totpEnabledAt }).toEqual({ totpSecret: before.totpSecret, totpEnabledAt: before.totpEnabledAt })
      const mail = await host.mails.next({ kind: 'password_reset', to: person.email })
      expect(mail.text.replaceAll(/\s+/g, ' ')).toContain('Your recovery codes no longer work. After you sign in, create new ones.')
      expect(await host.knex('auth_recovery_codes').where({ user_id: person.userId })).toEqual([])
    })

    test('an undo gives back the factor before a thief’s own, and a final change of it stays (25.4.1)', async () => {
      const host = await start()
      const { person: young } = await enrolledWithMail(host)
      const person = await later(host, young, day + 60)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      await post(host, '/mfa/disable', { password: anotherPassword, code: person.app.nextCode() }, bearerOf(person)).expect(204)
      await undo(host, token).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ totpEnabledAt: null, totpSecret: null })
    })

    test('the link that removes a first factor works for 48 hours, or undoSeconds if that is less (25.4.1)', async () => {
      for (const [undoSeconds, livesSeconds] of [
        [604_800, 2 * day],
        [3_600, 3_600],
      ] as const) {
        const host = await start({ settings: { undoSeconds } })
        const { person, enrolment } = await enrolledWithMail(host)
        host.clock.advance(livesSeconds - 1)
        await host.browser().get(`${host.prefix}/security/undo/${enrolment}`).expect(200)
        host.clock.advance(1)
        await undo(host, enrolment).expect(401)
        expect((await userById(host.knex, person.userId)).totpEnabledAt).not.toBeNull()
      }
    })

    test('after the 48 hours no link removes a first factor, nor does the undo of a change of the same day (25.4.1)', async () => {
      const host = await start()
      const { person, enrolment } = await enrolledWithMail(host)
      host.clock.advance(60)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      host.clock.advance(2 * day)
      await undo(host, enrolment).expect(401)
      await undo(host, token).expect(200)
      expect((await userById(host.knex, person.userId)).totpEnabledAt).not.toBeNull()
    })

    test('an undo knows a factor by its decrypted secret, whichever key encrypted it (25.4.1)', async () => {
      const host = await start()
      const { person: young } = await enrolledWithMail(host)
      const person = await later(host, young, day + 60)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      const keys = [Buffer.from('a key of exactly thirty-two byte')]
      const again = sealSecret(keys, person.userId, person.secret)
      await host.knex('auth_users').where({ id: person.userId }).update({ totp_secret: again })

      await undo(host, token).expect(200)

      expect((await userById(host.knex, person.userId)).totpSecret).toBe(again) // unchanged, so the codes stay too
      expect(await host.knex('auth_recovery_codes').where({ user_id: person.userId })).not.toEqual([])
    })

    test('a secret that no key decrypts is another factor: the undo sets the earlier one, without recovery codes (25.4.1)', async () => {
      const host = await start()
      const { person: young } = await enrolledWithMail(host)
      const person = await later(host, young, day + 60)
      const { totpSecret } = await userById(host.knex, person.userId)
      await changePassword(host, person).expect(204)
      const foreign = sealSecret([Buffer.from('another key of thirty-two bytes.')], person.userId, person.secret)
      await host.knex('auth_users').where({ id: person.userId }).update({ totp_secret: foreign })
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      expect((await userById(host.knex, person.userId)).totpSecret).toBe(totpSecret)
      expect(await host.knex('auth_recovery_codes').where({ user_id: person.userId })).toEqual([])
    })

    test('a change that an old factor confirmed is final: its notice says so, and a later undo leaves it', async () => {
      const host = await start()
      const person = await oldFactor(host)
      await changePassword(host, person).expect(204)
      const token = await undoTokenOf(host, person.email)
      await post(host, '/mfa/disable', { password: anotherPassword, code: person.app.nextCode() }, bearerOf(person)).expect(204)

      const notice = await host.mails.next({ kind: 'notice', to: person.email })
      expect(notice.url).toBeNull()
      expect(notice.text).toContain('cannot be undone with a link')
      await undo(host, token).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ totpEnabledAt: null, totpSecret: null })
    })

    const finalChanges: Record<string, (host: LocalHost, person: EnrolledMember, code: string) => Promise<unknown>> = {
      'a new password': (host, person, code) =>
        post(host, '/password-change', { current_password: password, new_password: anotherPassword, code }, bearerOf(person)).expect(204),
      'an unlinked identity': (host, person, code) =>
        post(host, '/oauth/accounts/unlink', { provider: 'older', code }, bearerOf(person)).expect(204),
      'a linked identity': (host, person, code) =>
        post(
          host,
          '/oauth/corp/link',
          { access_token: host.provider.issueAccessToken({ profile: newPerson() }), code },
          bearerOf(person),
        ).expect(201),
      async 'a new address (X8)'(host, person, code) {
        const to = newAddress()
        await post(host, '/email-change/request', { new_email: to, code }, bearerOf(person)).expect(202)
        const token = tokenOf(await host.mails.next({ kind: 'email_change', to }))
        await post(host, '/email-change/confirm', { token }, bearerOf(person)).expect(200)
        expect((await userById(host.knex, person.userId)).email).toBe(to)
      },
    }

    test.each(Object.entries(finalChanges))(
      '%s with a code of an old factor is final; with a wrong code nothing changes',
      async (_name, change) => {
        const host = await start()
        const person = await oldFactor(host)
        await addIdentity(host.knex, person.userId, { provider: 'older' })
        await expect(change(host, person, '000000')).rejects.toThrow(/401/)
        await change(host, person, person.app.nextCode())
        const notices = host.mails.mails.filter(
          ({ kind, to, text }) => kind === 'notice' && to === person.email && text.includes('cannot be undone with a link'),
        )
        await expect.poll(() => host.mails.mails.filter(({ text }) => text.includes('cannot be undone with a link')).length).toBe(1)
        expect(notices.every(({ url }) => url === null)).toBe(true)
      },
    )

    test('X1 (a): the thief’s own link takes back only what came after it, and the owner’s still works', async () => {
      const host = await start()
      const person = await signedIn(host)
      const [second, third] = [newAddress(), newAddress()]
      await moveTo(host, person, second)
      const ownersToken = await undoTokenOf(host, person.email)
      host.clock.advance(1)
      await moveTo(host, person, third)
      await undo(host, await undoTokenOf(host, second)).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: second })

      await undo(host, ownersToken).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: person.email, isActive: true })
      expect((await comeBack(host, person.email)).status).toBe(200)
      const thiefs = tokenOf(await host.mails.next({ kind: 'password_reset', to: second }))
      await post(host, '/password-reset/confirm', { token: thiefs, new_password: otherPassword }).expect(401)
    })

    test('X1 (a): also where the thief’s next change is stamped before the first, by another process or in the same instant', async () => {
      const host = await start()
      const person = await signedIn(host)
      const second = newAddress()
      await moveTo(host, person, second)
      const ownersToken = await undoTokenOf(host, person.email)
      host.clock.advance(-2)
      await changePassword(host, person).expect(204)
      await undo(host, await undoTokenOf(host, second)).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: second })

      await undo(host, ownersToken).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: person.email, isActive: true })
      expect((await comeBack(host, person.email)).status).toBe(200)
    })

    test('X1 (b): the undo of the last change gives the address before it, and mails nothing to a former one', async () => {
      const host = await start()
      const person = await signedIn(host)
      const [own, thiefs] = [newAddress(), newAddress()]
      await moveTo(host, person, own)
      host.clock.advance(3 * day)
      const later = await signedInAs(host, own)
      await moveTo(host, later, thiefs)
      await undo(host, await undoTokenOf(host, own)).expect(200)

      expect(await userById(host.knex, person.userId)).toMatchObject({ email: own })
      expect((await comeBack(host, own)).status).toBe(200)
      expect(host.mails.mails.filter(({ to, kind }) => to === person.email && kind === 'password_reset')).toEqual([])
    })

    test('X2: a flood of other mails hides no notice, and the eleventh change of a day is refused', async () => {
      const host = await start()
      const person = await signedIn(host)
      for (let times = 0; times < 30; times += 1) await host.auth.service.requestPasswordReset(person.email)
      let current = password
      for (let times = 0; times < 10; times += 1) {
        const next = `${anotherPassword} ${times}`
        await changePassword(host, person, next, current).expect(204)
        current = next
        expect((await host.mails.next({ kind: 'notice', to: person.email })).url).not.toBeNull()
      }
      await changePassword(host, person, otherPassword, current).expect(429, /TOO_MANY_REQUESTS/)
      await post(host, '/login', { email: person.email, password: current }).expect(200)
      host.clock.advance(day)
      const again = await signedInAs(host, person.email, current)
      await changePassword(host, again, otherPassword, current).expect(204)
    })

    test('X3: what a thief holds open does not outlive the undo', async () => {
      const host = await start()
      const person = await signedIn(host)
      const thiefs = newAddress()
      await moveTo(host, person, thiefs)
      await post(host, '/password-reset/request', { email: thiefs }).expect(202)
      const reset = tokenOf(await host.mails.next({ kind: 'password_reset', to: thiefs }))
      const further = newAddress()
      await post(host, '/email-change/request', { new_email: further, current_password: password }, bearerOf(person)).expect(202)
      const change = tokenOf(await host.mails.next({ kind: 'email_change', to: further }))

      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      await post(host, '/password-reset/confirm', { token: reset, new_password: otherPassword }).expect(401)
      await post(host, '/email-change/confirm', { token: change, password }, bearerOf(person)).expect(401)
      expect((await tokenRows(host, person.userId)).filter(({ isUsed }) => !isUsed)).toMatchObject([{ purpose: 'PASSWORD_RESET' }])
      expect((await comeBack(host, person.email)).status).toBe(200)
    })

    test('X3: a first password that was under way does not outlive the undo, also where the store keeps no sessions', async () => {
      const store = createKnexStore({ knex: (await start()).knex, sessions: false })
      let meanwhile: (() => Promise<unknown>) | null = null
      const check = async () => {
        const now = meanwhile
        meanwhile = null
        await now?.()
        return null
      }
      const host = await start({ options: { store, passwordPolicy: { check } } })
      const { body } = await signIn(host, host.browser(), { profile: newPerson() })
      host.clock.advance(1)
      const other: OAuthUser = { provider: 'other', subject: 's', email: null, emailVerified: null, name: null, picture: null, raw: {} }
      await host.auth.service.linkIdentity(body.user_id, other)
      const { email } = (await userById(host.knex, body.user_id)) ?? {}
      const token = await undoTokenOf(host, String(email))
      meanwhile = () => undo(host, token).expect(200)
      await post(host, '/password/first', { new_password: otherPassword }, bearerOf({ token: body.access_token })).expect(401)
      await post(host, '/login', { email, password: otherPassword }).expect(401)
      expect((await comeBack(host, String(email))).status).toBe(200)
    })

    test('X4: what a thief planted quietly before the last change is removed too', async () => {
      const host = await start()
      const person = await signedIn(host)
      await link(host, person).expect(201)
      host.clock.advance(25 * 3_600)
      const later = await signedInAs(host, person.email)
      const older = await addIdentity(host.knex, person.userId, { provider: 'older' })
      await moveTo(host, later, newAddress())
      await host.mails.next({ kind: 'notice', to: person.email }) // of the identity, which the owner overlooked
      await undo(host, await undoTokenOf(host, person.email)).expect(200)

      const left = await host.auth.service.listIdentities(person.userId)
      expect(left.map(({ provider }) => provider)).toEqual([older.provider])
      const mail = await host.mails.next({ kind: 'password_reset', to: person.email })
      expect(mail.text).toContain('- “older”, connected on January 2, 2026\n')
      expect(mail.text).not.toContain('corp')
    })

    test('X4: an identity that a provider’s word on the address linked is undone, too, also after later changes', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
      const person = await signedIn(host)
      const profile = newPerson({ email: person.email })
      expect((await signIn(host, host.browser(), { profile })).body.user_id).toBe(person.userId)
      host.clock.advance(day + 60)
      const { body } = await signIn(host, host.browser(), { profile })
      await moveTo(host, { ...person, token: body.access_token }, newAddress())
      await undoTokenOf(host, person.email) // of the identity, which the owner overlooked
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      expect(await host.auth.service.listIdentities(person.userId)).toEqual([])
    })

    test('X6 (a): where the address is taken by now, nobody else’s account changes, and administrators decide', async () => {
      const host = await start()
      const person = await signedIn(host)
      const conflicts: unknown[] = []
      host.auth.events.on('undo.conflict', (payload) => conflicts.push(payload))
      const thiefs = newAddress()
      await moveTo(host, person, thiefs)
      const token = await undoTokenOf(host, person.email)
      const bystander = await signedIn(host, { email: person.email })
      const mailsBefore = host.mails.mails.length

      const { body } = await undo(host, token).expect(200)
      expect(body).toMatchObject({ address_restored: false })
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: `${person.userId}@undone.invalid`, isActive: false })
      expect(await userById(host.knex, bystander.userId)).toMatchObject({ email: person.email, isActive: true })
      await post(host, '/refresh', { refresh_token: bystander.refreshToken }).expect(200)
      await post(host, '/login', { email: thiefs, password }).expect(401)
      expect(conflicts).toEqual([{ userId: person.userId }])
      expect(host.mails.mails).toHaveLength(mailsBefore)
    })

    test('where no way to sign in is left, the account is closed and administrators decide', async () => {
      const host = await start({ settings: { localAccountsEnabled: false }, options: { refusesEmailLink: () => false } })
      const local = await start()
      const person = await signedIn(local)
      const conflicts: unknown[] = []
      host.auth.events.on('undo.conflict', (payload) => conflicts.push(payload))
      await link(host, person).expect(201)
      await undo(host, await undoTokenOf(host, person.email)).expect(200)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: person.email, isActive: false })
      expect(conflicts).toEqual([{ userId: person.userId }])
    })

    test('the page of a link lists what is left, spends nothing when it is opened, and undoes by its button', async () => {
      const host = await start({ settings: { backendLinks: false } })
      const person = await signedIn(host)
      await addIdentity(host.knex, person.userId, { provider: 'older<b>' })
      await changePassword(host, person).expect(204)
      const path = `${host.prefix}/security/undo/${await undoTokenOf(host, person.email)}`

      for (const language of ['en-US', 'pt-BR']) {
        const page = await host.browser().get(path).set('Accept-Language', language).expect(200)
        expect(page.text).toContain(
          language === 'pt-BR' ? '“older&lt;b&gt;”, conectado em 2 de janeiro de 2026' : '“older&lt;b&gt;”, connected on',
        )
        expect(page.text).toContain('<form method="post">')
      }
      const done = await host.browser().post(path).type('form').send({}).expect(200)
      expect(done.text).toContain('Your account was restored')
      await host.browser().get(path).expect(400)
      expect((await comeBack(host, person.email)).status).toBe(200)
    })

    const endings: Record<string, (host: LocalHost, person: LocalMember) => Promise<unknown>> = {
      'a logout everywhere': (host, { refreshToken }) =>
        post(host, '/logout', { refresh_token: refreshToken, all_sessions: true }).expect(204),
      'revokeSessions of the host': (host, { userId }) => host.auth.service.revokeSessions(userId),
      'a changed password': (host, person) => changePassword(host, person).expect(204),
      async 'a factor that is switched on'(host, { userId }) {
        const { secret } = await host.auth.service.enrollTotp(userId)
        const { authenticator } = await import('../mfa/authenticator')
        await host.auth.service.confirmTotp({ userId, code: authenticator(secret, host.clock).code() })
      },
      'a deactivation': (host, { userId }) => host.auth.service.deactivate(userId),
    }

    test.each(Object.entries(endings))('a begun change of address ends with %s', async (_name, end) => {
      const host = await start()
      const person = await signedIn(host)
      const thief = await signedInAs(host, person.email)
      const target = newAddress()
      await post(host, '/email-change/request', { new_email: target, current_password: password }, bearerOf(thief)).expect(202)
      const token = tokenOf(await host.mails.next({ kind: 'email_change', to: target }))
      await end(host, person)
      const fresh = await signedInAs(host, person.email, password).catch(() => null)
      await post(host, '/email-change/confirm', { token, password }, fresh ? bearerOf(fresh) : {}).expect(401)
      expect(await userById(host.knex, person.userId)).toMatchObject({ email: person.email })
    })
  })
}

async function signedInAs(host: LocalHost, email: string, with_ = password): Promise<LocalMember> {
  const { status, body } = await post(host, '/login', { email, password: with_ })
  if (status !== 200) throw new Error(`login answered ${status}`)
  return { email, userId: body.user_id, token: body.access_token, refreshToken: body.refresh_token }
}

/** A person whose factor is older than a day, in a new session that showed it. */
async function oldFactor(host: LocalHost): Promise<EnrolledMember> {
  const person = await enrolled(host)
  await host.mails.next({ kind: 'notice', to: person.email })
  host.clock.advance(day + 60)
  return signedInAgain(host, person)
}
