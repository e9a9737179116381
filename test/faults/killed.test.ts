import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { otherPassword, password, post, resetLink, signedIn, tokenRows } from '../local/people'
import { challengeOf, enrolled } from '../mfa/people'
import { rowCounts } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { everyAct } from '../support/torture'
import { type Act, acts, sending } from './acts'
import { type KillRig, killRig } from './kill-rig'
import { emptyTables } from './picture'
import { sweep } from './sweep'
import { type WellHost, wellHost } from './well-host'

for (const database of await databases()) {
  describe(`a process that is killed over its ${database.name} database`, { timeout: 60_000 }, () => {
    let host: WellHost
    let rig: KillRig

    beforeAll(async () => {
      host = await wellHost(database)
      rig = await killRig(host)
    }, 60_000)
    afterAll(async () => {
      await rig?.close()
      await host?.close()
    })

    test('F02: between a new account and its identity: neither is there, and the person gets in at a second try', async () => {
      await emptyTables(host.knex)
      const newIdentity = acts['GET /oauth/corp/callback of a new identity']
      const nobody = await rowCounts(host.knex)

      expect((await rig.kill(await newIdentity.prepare(host), { before: /^insert into .auth_identities/ })).answer).toBeNull()
      expect(await rowCounts(host.knex)).toEqual(nobody)

      expect((await (await newIdentity.prepare(host))(host.app)).status).toBe(200)
      expect(await rowCounts(host.knex)).toMatchObject({ auth_users: 1, auth_identities: 1, auth_sessions: 1 })
    })

    test('F03: between the link and what it is for: the link still works', async () => {
      const { email, userId, refreshToken } = await signedIn(host)
      const confirm = { token: await resetLink(host, email), new_password: otherPassword }

      const reset = await rig.kill(sending('/password-reset/confirm', confirm), { before: /^update .auth_users.* set .*hashed_password/ })
      expect(reset.answer).toBeNull()
      expect(await tokenRows(host, userId)).toMatchObject([{ purpose: 'PASSWORD_RESET', isUsed: false }])
      expect((await post(host, '/login', { email, password })).status).toBe(200)

      expect((await post(host, '/password-reset/confirm', confirm)).status).toBe(200)
      expect((await post(host, '/login', { email, password: otherPassword })).status).toBe(200)
      expect((await post(host, '/refresh', { refresh_token: refreshToken })).status).toBe(401)
    })

    test('F04: between the commit and the mail: the link that nobody got is there, and another can be asked for, which replaces it', async () => {
      const { email, userId } = await signedIn(host)
      await rig.kill(sending('/password-reset/request', { email }), { at: 'mail' })
      const [lost, ...others] = await tokenRows(host, userId)
      expect([lost?.isUsed, others, host.mails.mails.some(({ to }) => to === email)]).toEqual([false, [], false])

      await post(host, '/password-reset/request', { email })
      const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
      expect((await tokenRows(host, userId)).filter(({ isUsed }) => !isUsed)).toHaveLength(1)
      expect((await post(host, '/password-reset/confirm', { token, new_password: otherPassword })).status).toBe(200)
    })

    test('F05: between a code and its session: neither was; between the session and its answer: the code is spent, the next one works', async () => {
      const person = await enrolled(host)
      const verify = async (code: string) => sending('/mfa/verify', { mfa_token: await challengeOf(host, person), code })
      const sessions = async () => (await host.knex('auth_sessions').where({ user_id: person.userId })).length
      const before = await sessions()

      const first = await verify(person.app.code(1))
      expect((await rig.kill(first, { before: /^insert into .auth_sessions/ })).answer).toBeNull()
      expect(await sessions()).toBe(before)
      expect((await rig.kill(first, { at: 'answer' })).answer).toBeNull()
      expect(await sessions()).toBe(before + 1)

      expect((await first(host.app)).body.code).toBe('MFA_TOKEN_INVALID')
      expect((await (await verify(person.app.code(1)))(host.app)).body.code).toBe('MFA_CODE_INVALID')
      const [recoveryCode = ''] = person.recoveryCodes
      expect((await (await verify(recoveryCode))(host.app)).status).toBe(200)
      expect((await (await verify(person.app.nextCode()))(host.app)).body.code).toBe('MFA_CODE_INVALID') // 30 s on, the same step
      expect((await (await verify(person.app.nextCode()))(host.app)).status).toBe(200)
      host.clock.advance(-60) // the clock of the process that dies stands still
    })

    const chosen = everyAct ? Object.entries<Act>(acts) : []
    for (const [name, act] of chosen) {
      test(`F02, F03: at each statement of ${name}: all of it is kept or nothing`, { timeout: 180_000 }, async () => {
        const { violations, strikes, before, after } = await sweep(act, rig)
        expect(violations).toEqual([])
        expect(strikes).toBeGreaterThan(1)
        expect(before + after).toBe(strikes)
      })
    }
  })
}
