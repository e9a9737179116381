export interface Accents {
  readonly light: HexColour
  readonly onLight: HexColour
  readonly dark: HexColour
  readonly onDark: HexColour
}

export function styleSheet({ light, onLight, dark, onDark }: Accents, own: string): string {
  return `:root{color-scheme:light dark;--paper:#ffffff;--ground:#f3f5f8;--ink:#18202b;--soft:#566172;--line:#dde2e9;--edge:#7d8797;--accent:${light};--on:${onLight};--bad:#a3222a;--badground:#fdf1f1;--good:#1b6b3a;--goodground:#eef8f1}
@media (prefers-color-scheme:dark){:root{--paper:#171c23;--ground:#0e1217;--ink:#e9edf3;--soft:#a9b3c1;--line:#2c3440;--edge:#7a8799;--accent:${dark};--on:${onDark};--bad:#ffb0ae;--badground:#35191b;--good:#93dcae;--goodground:#14291c}}
${rules}${own}`
}

const rules = `*,::before,::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scrollbar-color:var(--edge) transparent}
body{margin:0;min-height:100vh;min-height:100dvh;display:flex;flex-direction:column;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
.skip{position:absolute;left:-200rem}
.skip:focus{left:1rem;top:1rem;padding:.5rem 1rem;background:var(--paper);border-radius:.5rem;z-index:1}
.top{display:flex;align-items:center;justify-content:space-between;gap:1rem;padding:1rem min(1.25rem,6.25vw);max-width:64rem;width:100%;margin:0 auto}
.brand{display:inline-flex;align-items:center;gap:.65rem;min-height:2.75rem;font-weight:650;font-size:1.0625rem;letter-spacing:-.01em;color:var(--ink);text-decoration:none}
.brand img{height:2rem;width:auto;max-width:10rem;display:block}
.who{display:flex;align-items:center;gap:1rem;min-width:0;color:var(--soft);font-size:.9375rem}
.who span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
main{width:100%;margin:0 auto;flex:1 0 auto}
main:focus{outline:none}
.single{max-width:28rem;padding:1rem min(1rem,5vw) 2.5rem;display:flex;flex-direction:column;justify-content:center}
.card{background:var(--paper);border:1px solid var(--line);border-radius:1rem;padding:1.75rem min(1.5rem,7.5vw)}
.area{max-width:64rem;padding:.5rem min(1.25rem,6.25vw) 3rem;display:grid;align-content:start;gap:1.25rem}
.area>div>.card+.card{margin-top:1.25rem}
h1{font-size:1.625rem;line-height:1.2;letter-spacing:-.015em;font-weight:680;margin:0 0 .5rem;text-wrap:balance}
h2{font-size:1.125rem;line-height:1.3;letter-spacing:-.005em;font-weight:650;margin:0 0 .35rem}
p{margin:0 0 1rem;text-wrap:pretty}
.lead,.hint{color:var(--soft)}
.hint{font-size:.9rem;margin:0 0 .4rem}
.lead strong{color:var(--ink);font-weight:600}
a{color:var(--accent);text-underline-offset:.18em;text-decoration-thickness:1px}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:.3rem}
form{margin:1.25rem 0 0}
.field{margin:0 0 1.1rem}
label,legend{display:block;font-weight:600;font-size:.9375rem;margin:0 0 .35rem;padding:0}
label small{font-weight:400;color:var(--soft);font-size:.875rem}
input:where(:not([type=checkbox],[type=radio],[type=hidden])),select{display:block;width:100%;min-height:2.875rem;font:inherit;padding:.55rem .8rem;color:var(--ink);background:var(--paper);border:1px solid var(--edge);border-radius:.55rem}
input[readonly]{background:var(--ground);color:var(--soft)}
input[aria-invalid=true]{border-color:var(--bad);box-shadow:0 0 0 1px var(--bad)}
.secret{display:flex;flex-wrap:wrap;align-items:center;background:var(--paper);border:1px solid var(--edge);border-radius:.55rem}
.secret:focus-within{outline:3px solid var(--accent);outline-offset:2px}
.secret input{flex:1 1 8rem;min-width:0;border:0;border-radius:inherit;background:none}
.secret input:focus-visible{outline:none}
.secret:has([aria-invalid=true]){border-color:var(--bad);box-shadow:0 0 0 1px var(--bad)}
.secret input[aria-invalid=true]{box-shadow:none}
.reveal{flex:none;width:auto;min-height:2.25rem;margin:.25rem .3rem .25rem auto;padding:0 .7rem;background:none;border:0;border-radius:.4rem;color:var(--accent);font:inherit;font-size:.9rem;font-weight:600;cursor:pointer}
.reveal[aria-pressed=true]{text-decoration:line-through}
.code input{font-variant-numeric:tabular-nums;letter-spacing:.12em}
.check{display:flex;align-items:flex-start;gap:.6rem;margin:0 0 1.1rem}
.check input{width:1.25rem;height:1.25rem;margin:.15rem 0 0;flex:none;accent-color:var(--accent)}
.check label{font-weight:400;margin:0}
.fault{display:flex;gap:.4rem;color:var(--bad);font-size:.9rem;font-weight:550;margin:.4rem 0 0}
.problem,.notice{border-radius:.6rem;padding:.75rem .95rem;margin:1.1rem 0 0;border:1px solid;font-weight:550}
.problem{color:var(--bad);background:var(--badground)}
.notice{color:var(--good);background:var(--goodground);margin:0 0 1.1rem}
.note{background:var(--ground);border:1px solid var(--line);border-radius:.6rem;padding:.75rem .95rem;margin:1.1rem 0 0}
button,.button{display:flex;align-items:center;justify-content:center;gap:.6rem;width:100%;min-height:2.875rem;font:inherit;font-weight:620;text-align:center;text-decoration:none;padding:.55rem 1.1rem;border:1px solid transparent;border-radius:.55rem;background:var(--accent);color:var(--on);cursor:pointer}
button:hover,.button:hover{filter:brightness(1.06)}
.second{background:var(--paper);color:var(--ink);border-color:var(--edge);font-weight:560}
.danger{background:var(--paper);color:var(--bad);border-color:var(--bad)}
button+button,.button+.button,button+.button,.button+button{margin-top:.7rem}
.plain{display:inline;width:auto;min-height:2.75rem;padding:0;background:none;border:0;color:var(--accent);font-weight:560;text-decoration:underline;text-underline-offset:.18em}
.who form{margin:0}
.or{display:flex;align-items:center;gap:.9rem;margin:1.4rem 0;color:var(--soft);font-size:.9rem}
.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--line)}
.ways{display:grid;gap:.7rem}
.ways .button,.ways form{margin:0}
.links{display:flex;flex-wrap:wrap;gap:0 1.25rem}
.links a{display:inline-flex;align-items:center;min-height:2.75rem}
.beside{display:flex;justify-content:space-between;align-items:baseline;gap:1rem;flex-wrap:wrap}
.after{margin:1.4rem 0 0;padding-top:1.2rem;border-top:1px solid var(--line);color:var(--soft)}
h2:not(:first-child){margin-top:2rem}
.card>.hint+.button{margin-top:.6rem}
button+.hint{margin-top:.5rem}
.problem+button,.note+.button{margin-top:1.1rem}
noscript .note{margin:0 0 1.1rem}
.links+.button{margin-top:1rem}
.field+.hint{margin:-.4rem 0 1rem}
.rows+.button,.rows+form{margin-top:1.25rem}
.below{margin:1.1rem 0 0}
.card>:last-child,form>:last-child,main>:last-child{margin-bottom:0}
nav.pages{min-width:0}
nav.pages ul{list-style:none;margin:0;padding:.2rem;display:flex;gap:.3rem;overflow-x:auto;scrollbar-width:thin}
nav.pages a{display:block;white-space:nowrap;padding:.6rem .85rem;border-radius:.55rem;color:var(--soft);text-decoration:none;font-weight:560}
nav.pages a:hover{color:var(--ink)}
nav.pages a[aria-current]{background:var(--paper);color:var(--ink);box-shadow:inset 0 0 0 1px var(--line)}
table{width:100%;border-collapse:collapse;margin:1rem 0 0}
th{text-align:start;font-size:.875rem;font-weight:600;color:var(--soft);padding:.5rem .75rem .5rem 0}
td{padding:.8rem .75rem .8rem 0;border-top:1px solid var(--line);vertical-align:top}
td form{margin:0}
td button,.row button,.row .button{width:auto;min-height:2.75rem;margin:0}
.list{margin:0 0 .35rem;font-weight:600}
ul.rows{list-style:none;margin:1rem 0 0;padding:0}
.row{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:.75rem 1.25rem;border-top:1px solid var(--line);padding:1rem 0}
.row:last-child{padding-bottom:0}
.row>:first-child{flex:1 1 12rem;min-width:0;overflow-wrap:anywhere}
.row form{margin:0}
.row p{margin:0}
.tag{display:inline-block;font-size:.8125rem;font-weight:600;color:var(--good);background:var(--goodground);border-radius:1rem;padding:.1rem .6rem}
.tag.open{color:var(--bad);background:var(--badground)}
.codes li{white-space:nowrap;overflow-wrap:normal}
.phone{display:none}
@media (pointer:coarse),(max-width:30rem){.phone{display:block}}
.mark{display:inline-flex;flex:none}
.mark svg{width:1.25rem;height:1.25rem}
.codes{list-style:none;margin:1rem 0;padding:1rem min(1.1rem,4vw);background:var(--ground);border:1px solid var(--line);border-radius:.6rem;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(17rem,100%),1fr));gap:.45rem 1.25rem;font:min(.875rem,3.3vw)/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.card>ul:not([class]){list-style:none;margin:1rem 0;padding:.75rem .95rem;background:var(--ground);border:1px solid var(--line);border-radius:.6rem}
.card>.list+ul:not([class]){margin-top:0}
h1+.notice{margin-top:1rem}
.key{font:1rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;user-select:all}
.qr{display:block;width:13rem;max-width:100%;height:auto;margin:1rem 0;padding:.75rem;background:#fff;border:1px solid var(--line);border-radius:.6rem}
.foot{display:flex;flex-wrap:wrap;justify-content:center;gap:.25rem 1.25rem;padding:0 1.25rem 1.5rem;font-size:.9rem;color:var(--soft)}
.foot a,.foot span{color:var(--soft);display:inline-flex;align-items:center;min-height:2.75rem}
.foot span{color:var(--ink);font-weight:600}
[hidden]{display:none!important}
@media (min-width:30rem){.card{padding:2.25rem 2.25rem}.area>div>form button,.area .card>form button:not(.reveal){width:auto}.area .card>.button,.area .card>button{display:inline-flex;width:auto}}
@media (min-width:52rem){.area{grid-template-columns:13rem minmax(0,40rem);gap:2rem;padding-top:1rem}nav.pages ul{flex-direction:column;overflow:visible}nav.pages a{white-space:normal}}
@media (max-width:26rem){.who span{display:none}}
@media (forced-colors:active){button,.button{border-color:ButtonBorder}}
@media print{body{background:#fff}.top,.foot,nav.pages,form,button,.button,.problem,.notice{display:none!important}.card{border:0;padding:0}}
`

type HexColour = `#${string}`

type Channels = readonly [red: number, green: number, blue: number]

/** Of text and its background (WCAG 2.2, 1.4.3). */
export const enoughContrast = 4.5

/** Six digits in lower case. Null: not a CSS hex colour. */
export function readColour(text: unknown): HexColour | null {
  if (typeof text !== 'string' || !/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(text)) return null
  const digits = text.slice(1).toLowerCase()
  return `#${digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits}`
}

export function contrastOf(one: HexColour, other: HexColour): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Black or white: at least one of the two always has a contrast of 4.5:1. */
export function textOn(colour: HexColour): HexColour {
  return contrastOf(colour, '#ffffff') >= enoughContrast ? '#ffffff' : '#000000'
}

/** Mixes with `towards` (white or black) until the contrast is 4.5:1. */
export function readableOn(colour: HexColour, background: HexColour, towards: HexColour): HexColour {
  for (let step = 0; step <= 100; step += 1) {
    const mixed = mix(colour, towards, step / 100)
    if (contrastOf(mixed, background) >= enoughContrast) return mixed
  }
  return towards
}

function mix(from: HexColour, to: HexColour, part: number): HexColour {
  const [start, end] = [channelsOf(from), channelsOf(to)]
  const mixed = start.map((value, index) => Math.round(value + ((end[index] ?? 0) - value) * part))
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

function luminanceOf(colour: HexColour): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(colour).map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function channelsOf(colour: HexColour): Channels {
  const value = Number.parseInt(colour.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}
