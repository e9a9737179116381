/** `npm run bench -- login-timing [samples]`, `… guard [rounds]` or `… admin-list [users]`, at a quiet moment. */
const benches: Readonly<Record<string, () => Promise<unknown>>> = {
  'login-timing': () => import('./login-timing.mjs'),
  guard: () => import('./guard.mjs'),
  'admin-list': () => import('./admin-list.mjs'),
}

const [name = ''] = process.argv.splice(2, 1) // what is left is the bench's own
const bench = benches[name]
if (!bench) throw new Error(`npm run bench -- ${Object.keys(benches).join(' | ')}`)
await bench()
