/** express-session with its Knex store, as its documentation says, and no more behind the guard than the session: no user is read. */
import { ConnectSessionKnexStore } from 'connect-session-knex'
import express from 'express'
import session from 'express-session'
import { openKnex } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

await serve(async () => {
  const store = new ConnectSessionKnexStore({ knex: openKnex(), cleanupInterval: 0 })
  return express()
    .use(session({ store, secret: 'an-only-secret-for-measuring-7f3b9a61', resave: false, saveUninitialized: false }))
    .post('/auth/signup', (_req, res) => void res.status(201).json({ ok: true }))
    .post('/auth/login', express.json(), (req, res) => {
      req.session.userId = req.body.email
      res.json({ ok: true })
    })
    .get('/protected', (req, res) => {
      if (!req.session.userId) return void res.status(401).json({ code: 'UNAUTHORIZED' })
      res.json({ ok: true, sub: req.session.userId })
    })
})
