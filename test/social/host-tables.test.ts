import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { createPeople, PEOPLE, PEOPLE_COUNT } from '../store/host-tables'
import { type Mounted, type MountOptions, mount, signIn } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'

// An app with three years of people in a table of its own, to which social login is added.
describe.each(await databases())("an existing app's people on $name", (database) => {
  let opened: OpenDatabase
  let mounted: Mounted
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  async function start(settings: MountOptions['settings'] = {}): Promise<Mounted> {
    opened = await database.open()
    await createPeople(opened.knex, database.name)
    await createAuthTables(opened.knex, PEOPLE)
    const store = createKnexStore({ knex: opened.knex, users: PEOPLE.users ?? {} })
    mounted = await mount({ knex: opened.knex, settings, options: { store } })
    return mounted
  }
  const people = async () => Number((await opened.knex('people').count({ count: '*' }).first())?.['count'])

  test('the first social login of a stranger makes a person under the next key; the second finds it', async () => {
    const { browser, prefix } = await start()
    const profile = { sub: 'S-1', email: 'Ana@Example.test', email_verified: true, name: 'Ana' }
    const first = await signIn(mounted, browser(), { profile })
    expect(first.status, first.text).toBe(200)
    expect(first.body.user_id).toBe(String(PEOPLE_COUNT + 1))
    const row = await opened
      .knex('people')
      .where({ person_id: PEOPLE_COUNT + 1 })
      .first()
    expect(row).toMatchObject({ mail: 'ana@example.test', full_name: 'Ana', tenant_code: 'main' })
    const second = await signIn(mounted, browser(), { profile: { ...profile, email: 'other@example.test' } })
    expect(second.body.user_id).toBe(first.body.user_id)
    expect(await people()).toBe(PEOPLE_COUNT + 1)
    const me = await browser().get(`${prefix}/me`).set('Authorization', `Bearer ${second.body.access_token}`)
    expect(me.body).toMatchObject({ id: first.body.user_id, email: 'ana@example.test', name: 'Ana', is_active: true })
    const refreshed = await browser().post(`${prefix}/refresh`).send({ refresh_token: second.body.refresh_token })
    expect(refreshed.status, refreshed.text).toBe(200)
  })

  test('where the app says that its addresses are proven, a person of old is linked and keeps the password', async () => {
    await start({ oauthLinkByVerifiedEmail: true, assumeEmailsProven: true })
    const answer = await signIn(mounted, mounted.browser(), {
      profile: { sub: 'S-7', email: 'person7@example.test', email_verified: true },
    })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.user_id).toBe('8')
    expect(await people()).toBe(PEOPLE_COUNT)
    expect(await opened.knex('people').where({ person_id: 8 }).first('pw_digest')).toEqual({ pw_digest: '$2b$12$of.an.older.time' })
    expect(await opened.knex('auth_identities').select('subject')).toEqual([{ subject: 'S-7' }])
  })

  test('without that word nobody is linked, and boot refuses to try', async () => {
    await start()
    const answer = await signIn(mounted, mounted.browser(), {
      profile: { sub: 'S-7', email: 'person7@example.test', email_verified: true },
    })
    expect([answer.status, answer.body.code]).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    await mounted.close()
    await opened.close()
    await expect(start({ oauthLinkByVerifiedEmail: true })).rejects.toThrow(/assumeEmailsProven/)
  })

  test('a person whom the app switched off is refused', async () => {
    await start({ oauthLinkByVerifiedEmail: true, assumeEmailsProven: true })
    const answer = await signIn(mounted, mounted.browser(), {
      profile: { sub: 'S-9', email: 'person9@example.test', email_verified: true },
    })
    expect([answer.status, answer.body.code]).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
    expect(await opened.knex('auth_sessions')).toEqual([])
  })

  // docs/store.md: addresses are lower-cased before they are looked up, so an app that kept them as typed lower-cases its rows first.
  test('an address kept in mixed case belongs to nobody until the app lower-cases it', async () => {
    await start({ oauthLinkByVerifiedEmail: true, assumeEmailsProven: true, oauthAllowAccountCreation: false })
    await opened.knex('people').where({ person_id: 5 }).update({ mail: 'Mixed@Example.test' })
    const profile = { sub: 'S-5', email: 'Mixed@Example.test', email_verified: true }
    const before = await signIn(mounted, mounted.browser(), { profile })
    expect(before.status, before.text).toBe(403)
    await opened.knex('people').update({ mail: opened.knex.raw('lower(mail)') })
    const after = await signIn(mounted, mounted.browser(), { profile })
    expect(after.body.user_id, after.text).toBe('5')
  })
})
