import { describe, expect, test } from 'vitest'
import { type LocalHost, onLocal, signedIn } from '../local/people'
import { addUser, userById } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { act, adminOn, patch, read } from './people'

/** A notice of the topic, taken from the mailbox. */
async function subjectTo(host: LocalHost, to: string): Promise<string> {
  return (await host.mails.next({ kind: 'notice', to })).subject
}

for (const database of await databases()) {
  describe(`who becomes an administrator, on ${database.name}`, () => {
    const { start } = onLocal(database)

    test('is told, and so are the one who did it and the other administrators; observers hear who did it', async () => {
      const host = await start()
      const heard: unknown[] = []
      for (const name of ['admin.granted', 'admin.revoked'] as const) host.auth.events.on(name, (payload) => heard.push([name, payload]))
      const [actor, other, person] = [await adminOn(host), await adminOn(host), await signedIn(host)]

      await patch(host, actor, person.userId, { is_admin: true }).expect(200)
      const mail = await host.mails.next({ kind: 'notice', to: other.email })
      expect(mail.subject).toBe('There is a new administrator')
      expect(mail.text).toContain(`- ${person.email}\n`)
      for (const { email } of [actor, person]) expect(await subjectTo(host, email)).toBe('There is a new administrator')

      await patch(host, actor, person.userId, { is_admin: true }).expect(200) // is one already
      await patch(host, actor, person.userId, { is_admin: false }).expect(200)
      for (const { email } of [actor, other, person]) expect(await subjectTo(host, email)).toBe('An administrator was removed')
      await host.auth.service.updateUser(person.userId, { isAdmin: true })
      expect(heard).toEqual([
        ['admin.granted', { userId: person.userId, actorId: actor.userId }],
        ['admin.revoked', { userId: person.userId, actorId: actor.userId }],
        ['admin.granted', { userId: person.userId, actorId: null }],
      ])
    })

    test('cannot be one of more than ten changes of one administrator a day, so that no notice is used up first (X2)', async () => {
      const host = await start()
      const [actor, other] = [await adminOn(host), await adminOn(host)]
      const accomplice = await addUser(host.knex)
      for (let times = 0; times < 10; times += 1) {
        await patch(host, actor, accomplice.id, { is_admin: times % 2 === 0 }).expect(200)
        await host.mails.next({ kind: 'notice', to: other.email })
      }
      await patch(host, actor, accomplice.id, { is_admin: true }).expect(429, /TOO_MANY_REQUESTS/)
      expect((await userById(host.knex, accomplice.id)).isAdmin).toBe(false)
      await patch(host, actor, accomplice.id, { name: 'A Name' }).expect(200)
      await patch(host, other, accomplice.id, { is_admin: true }).expect(200)
    })

    test('find every route of theirs limited', async () => {
      const host = await start({ options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
      const [admin, person] = [await adminOn(host), await addUser(host.knex)]
      for (const call of [
        () => read(host, admin, '?limit=1'),
        () => read(host, admin, `/${person.id}`),
        () => act(host, admin, person.id, 'revoke-sessions'),
      ]) {
        for (let times = 0; times < 3; times += 1) expect((await call()).status).toBeLessThan(300)
        expect((await call()).status).toBe(429)
      }
    })
  })
}
