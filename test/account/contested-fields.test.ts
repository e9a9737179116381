import Joi from 'joi'
import { beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type LocalHost, newAddress, onLocal, password, post } from '../local/people'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { createMembers, members } from './members'

const schema = Joi.object({ firstName: Joi.string(), phone: Joi.string() })
const strangers = { password, name: 'Not The Owner', firstName: 'Nobody', phone: '+5511999' }

describe.each(await databases())('the words of a stranger in an account that is taken over, on $name', (database) => {
  const { start, opened } = onLocal(database)
  beforeAll(() => createMembers(opened().knex))

  const open = (fields: Record<string, string>): Promise<LocalHost> =>
    start({
      settings: { activationBinding: 'strict' },
      options: {
        store: createKnexStore({ knex: opened().knex, users: { ...members, fields } }),
        signup: { schema },
        throttle: { signup: false },
      },
    })

  /** A stranger signs up with the address twice, and its owner clicks. */
  async function takenOver(host: LocalHost) {
    const email = newAddress()
    const tokens = []
    for (let times = 0; times < 2; times += 1) {
      await post(host, '/signup', { email, ...strangers, password: `${strangers.password} ${times}` }).expect(201)
      tokens.push(tokenOf(await host.mails.next({ kind: 'activation', to: email })))
    }
    const { body } = await post(host, '/activate', { token: tokens.at(-1) }).expect(200)
    expect(body.password_required).toBe(true)
    return host.knex('members').where({ email }).first()
  }

  test('name and fields are emptied', async () => {
    const host = await open({ phone: 'phone' })
    expect(await takenOver(host)).toMatchObject({ name: null, phone: null })
  })

  test('a column that takes no null does not lock the owner out: the fields stay, the name is a placeholder, and the log says so once', async () => {
    const host = await open({ firstName: 'first_name', phone: 'phone' })
    for (let times = 0; times < 2; times += 1) {
      const row = await takenOver(host)
      expect(row).toMatchObject({ first_name: 'Nobody', phone: '+5511999', hashed_password: expect.stringMatching(/^!/) })
      expect([null, strangers.name]).not.toContain(row.name)
    }
    const told = host.logs.entries.filter(({ message }) => /could not be removed, because a column does not allow null/.test(message))
    expect(told.map(({ level }) => level)).toEqual(['error'])
  })
})
