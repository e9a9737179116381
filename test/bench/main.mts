/** `npm run bench -- login-timing [samples]` or `npm run bench -- guard [rounds]`, at a quiet moment. */
const benches: Readonly<Record<string, () => Promise<unknown>>> = {
  'login-timing': () => import('./login-timing.mjs'),
  guard: () => import('./guard.mjs'),
}

const [name = ''] = process.argv.splice(2, 1) // what is left is the bench's own
const bench = benches[name]
if (!bench) throw new Error(`npm run bench -- ${Object.keys(benches).join(' | ')}`)
await bench()
