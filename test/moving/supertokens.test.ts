import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { stringify } from 'csv-stringify/sync'
import type { Express } from 'express'
import type { Knex } from 'knex'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { appFolder, doorward } from '../command/run-command'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, expectOldPassword, type GivenOptions, onMove, rowsOf, runSql } from './moved-app'

const guide = readGuide<{
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter; store: KnexStore }>
}>('moving/supertokens')

/**
 * The core itself, a Java server, is not run here. The tables are those that supertokens-postgresql-plugin 9.5.5 (commit a906b10) creates in
 * GeneralQueries, EmailPasswordQueries, ThirdPartyQueries and EmailVerificationQueries, without their indexes and names of constraints. The rows are
 * written by this file, as those queries insert them.
 */
const schema = `
create table apps (app_id varchar(64) not null default 'public' primary key, created_at_time bigint);
create table app_id_to_user_id (app_id varchar(64) not null default 'public', user_id char(36) not null, recipe_id varchar(128) not null, primary_or_recipe_user_id char(36) not null, is_linked_or_is_a_primary_user boolean not null default false, time_joined bigint not null default 0, primary_or_recipe_user_time_joined bigint not null default 0, primary key (app_id, user_id), foreign key (app_id, primary_or_recipe_user_id) references app_id_to_user_id (app_id, user_id) on delete cascade, foreign key (app_id) references apps (app_id) on delete cascade);
create table emailpassword_users (app_id varchar(64) default 'public', user_id char(36) not null, email varchar(256) not null, password_hash varchar(256) not null, time_joined bigint not null, foreign key (app_id, user_id) references app_id_to_user_id (app_id, user_id) on delete cascade, primary key (app_id, user_id));
create table thirdparty_users (app_id varchar(64) default 'public', third_party_id varchar(28) not null, third_party_user_id varchar(256) not null, user_id char(36) not null, email varchar(256) not null, time_joined bigint not null, foreign key (app_id, user_id) references app_id_to_user_id (app_id, user_id) on delete cascade, primary key (app_id, user_id));
create table emailverification_verified_emails (app_id varchar(64) default 'public', user_id varchar(128) not null, email varchar(256) not null, primary key (app_id, user_id, email), foreign key (app_id) references apps (app_id) on delete cascade);
`
const joined = Date.parse('2026-01-02T03:04:05.678Z')
const idOf = (n: number) => `0b1f7e54-6a3c-4d8e-9f21-00000000000${n}`
const ada = { id: idOf(1), email: 'ada@example.com', password: 'correct horse' }
const grace = { email: 'grace@example.com', password: 'battery staple' }

/** A recipe user; `primary`: the one that it is linked to. */
async function addUser(knex: Knex, n: number, recipe: { email: string; hash?: string; google?: string }, primary = n): Promise<void> {
  const { email, hash, google } = recipe
  const time_joined = joined + n
  const isLinked = primary !== n
  await knex('app_id_to_user_id').insert({
    user_id: idOf(n),
    recipe_id: hash ? 'emailpassword' : 'thirdparty',
    primary_or_recipe_user_id: idOf(primary),
    is_linked_or_is_a_primary_user: isLinked,
    time_joined,
  })
  if (hash) await knex('emailpassword_users').insert({ user_id: idOf(n), email, password_hash: hash, time_joined })
  else
    await knex('thirdparty_users').insert({
      user_id: idOf(n),
      email,
      third_party_id: 'google',
      third_party_user_id: google,
      time_joined,
    })
}

for (const database of (await databases()).filter(({ name }) => name === 'postgres'))
  describe('from SuperTokens', () => {
    const { knex, options, signInWithGoogle } = onMove(database)
    const [accounts = '', identities = ''] = guide.sql
    const answers: { imported: number; skipped: number; refused: unknown[] }[] = []
    let app: Express
    let auth: AuthRouter

    beforeAll(async () => {
      await runSql(knex(), schema)
      await knex()('apps').insert({ created_at_time: joined })
      // The hashes that the core makes by default (bcrypt_log_rounds 11), and with password_hashing_alg ARGON2.
      await addUser(knex(), 1, { email: ada.email, hash: (await bcrypt.hash(ada.password, 11)).replace('$2b$', '$2a$') })
      await addUser(knex(), 2, { email: 'ada.l@gmail.com', google: 'google-1' }, 1)
      const costs = { type: argon2.argon2id, memoryCost: 87_795, timeCost: 1, parallelism: 2 } as const
      await addUser(knex(), 3, { email: grace.email, hash: await argon2.hash(grace.password, costs) })
      await addUser(knex(), 4, { email: grace.email, google: 'google-2' })
      await addUser(knex(), 5, { email: 'alone@example.com', google: 'google-3' })
      await knex()('emailverification_verified_emails').insert([
        { user_id: idOf(2), email: 'ada.l@gmail.com' },
        { user_id: idOf(5), email: 'alone@example.com' },
      ])

      const moved = await guide.code.createAuth(knex(), options())
      auth = moved.auth
      const folder = appFolder(auth)
      // psql --csv, which the guide calls, writes a boolean as t or f.
      const csv = stringify(await rowsOf(knex(), accounts), { header: true, cast: { boolean: (value) => (value ? 't' : 'f') } })
      writeFileSync(join(folder, 'accounts.csv'), csv)
      for (const command of guide.commands) answers.push(JSON.parse((await doorward(`${command} --json`, { folder })).out))
      await everyMove.addIdentities(moved.store, await rowsOf(knex(), identities))
      app = appWith(auth)
    })

    test('the dry run says what the import then does; of two accounts of one address the one with the password counts', () => {
      expect(answers).toEqual([
        { imported: 3, skipped: 1, refused: [] },
        { imported: 3, skipped: 1, refused: [] },
      ])
    })

    test('the old password signs in to the account with the old id, and its hash is replaced', () =>
      expectOldPassword(app, ada, async () => (await knex()('auth_users').where({ id: ada.id }).first()).hashed_password))

    test('a password that was hashed by argon2id signs in, too', async () => {
      const logIn = (password: string) => browserOf(app).send('post', '/auth/login', { email: grace.email, password })
      expect([(await logIn(ada.password)).status, (await logIn(grace.password)).body.user_id]).toEqual([401, idOf(3)])
    })

    test('the Google accounts sign in to the account that they were linked to; a skipped one is not given to whoever has its address', async () => {
      for (const [sub, id] of Object.entries({ 'google-1': idOf(1), 'google-3': idOf(5) }))
        expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
      expect(await knex()('auth_identities').orderBy('subject').pluck('subject')).toEqual(['google-1', 'google-3'])
    })

    test('an address counts as proven only where SuperTokens saw the proof of that address', async () => {
      const provenAt = async (n: number) => (await auth.service.findUser(idOf(n)))?.emailVerifiedAt ?? null
      expect([await provenAt(1), await provenAt(3), await provenAt(5)]).toEqual([null, null, new Date(joined + 5)])
    })
  })
