import { describe, expect, test } from 'vitest'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { appSettings, browse, exchange, isAlive } from './apps'

describe.each(await databases())('on $name', (database) => {
  const start = appPerTest(database)

  test('of exchanges at once exactly one wins, and a code that was shown so often gives no session that lasts', async () => {
    const host = await start({ settings: appSettings })
    const { code, verifier } = await browse(host)
    const answers = await Promise.all(Array.from({ length: 5 }, () => exchange(host, { code, verifier })))

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401])
    const winner = answers.find(({ status }) => status === 200)
    expect(winner && (await isAlive(host, winner))).toBe(false)
  })

  test('an exchange beside the end of all sessions leaves no session that is alive', async () => {
    const host = await start({ settings: appSettings })
    const { code, verifier } = await browse(host)
    const [{ id }] = await host.knex('auth_users').select('id')
    await Promise.all([exchange(host, { code, verifier }), host.auth.service.revokeSessions(id)])

    expect(await host.auth.service.listSessions(id)).toEqual([])
  })
})
