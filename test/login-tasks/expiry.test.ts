import { describe, expect, test } from 'vitest'
import { newPasswordTask } from '../../src'
import { adminOn } from '../admin/people'
import { bearerOf, otherPassword, password, post, resetLink, userOf } from '../local/people'
import { databases } from '../support/databases'
import { onTasks, outcome, person } from './people'

describe.each(await databases())('a password that must change on $name', (database) => {
  const { start } = onTasks(database)

  test('an administrator expires it: the event names them, the owner gets a notice, the sessions end unless they stay', async () => {
    const host = await start({ settings: { mfaEnabled: false }, options: { loginTasks: [newPasswordTask()] } })
    const [admin, who] = [await adminOn(host), await person(host)]
    const told: unknown[] = []
    host.auth.events.on('password.expired', (payload) => told.push(payload))
    const kept = await post(host, `/admin/users/${who.userId}/expire-password`, { keep_sessions: true }, bearerOf(admin))
    expect(outcome(kept)).toEqual([204, undefined])
    expect((await userOf(host, who.email)).passwordExpiredAt).toEqual(host.clock.now())
    expect((await post(host, '/admin/users/nobody/expire-password', {}, bearerOf(admin))).status).toBe(404)
    expect(told).toEqual([{ userId: who.userId, actorId: admin.userId }])
    expect((await host.mails.next({ kind: 'notice', to: who.email })).subject).toContain('new password')
  })

  test('the route is absent without newPasswordTask()', async () => {
    const host = await start({ settings: { mfaEnabled: false }, options: { loginTasks: [] } })
    const admin = await adminOn(host)
    expect((await post(host, `/admin/users/${admin.userId}/expire-password`, {}, bearerOf(admin))).status).toBe(404)
  })

  test('every new password clears the expiry', async () => {
    const host = await start()
    const { service } = host.auth
    const who = await person(host)
    const isExpired = async () => Boolean((await userOf(host, who.email)).passwordExpiredAt)
    await service.expirePassword(who.userId)
    expect(await isExpired()).toBe(true)
    await post(host, '/password-reset/confirm', { token: await resetLink(host, who.email), new_password: otherPassword })
    expect(await isExpired()).toBe(false)
    await service.changePassword({ userId: who.userId, currentPassword: otherPassword, newPassword: password })
    expect(await isExpired()).toBe(false)
    await service.expirePassword(who.userId)
    await expect(
      service.changePassword({ userId: who.userId, currentPassword: password, newPassword: otherPassword }),
    ).rejects.toMatchObject({
      status: 401,
    })
  })

  test('the doctor counts the accounts that a code for an unknown device does not protect', async () => {
    const host = await start({ settings: { unknownDevice: 'code' } })
    await person(host, { emailVerifiedAt: null })
    const { findings } = await host.auth.doctor()
    const found = findings.find(({ check }) => check === 'device-unprotected')
    expect(found?.what).toMatch(/^\d+ accounts? ha(s|ve) an unverified address and no second factor\.$/)
  })
})
