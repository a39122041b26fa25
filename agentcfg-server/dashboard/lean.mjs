// Leaves out of Preact what the dashboard has no use for: hydration, suspense, portals, classes with a life of their own, contexts,
// HTML as text, and more. Each cut names the text that goes, and the build fails where Preact has another one.

const CUTS = [
  // Hydration and suspense.
  ["128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B(s,o):o.push(s),l=o[0]||l),", ""],
  ["r.__u&=-161,p&&p.some(g),", "r.__u&=-161,"],
  ['if("svg"==C', '"svg"==C'],
  [/,o\)for\(s=0;.*?break\}if\(!t\)\{/, ";if(!t){"],
  [",l&&(n.__m&&n.__m(r,o),l=!1),o=null}if(C)", "}if(C)"],
  [
    /o="textarea"==C&&null!=x\.defaultValue\?null:o&&d\.call\(a\.childNodes\),!l&&o\)for\(\$=\{\},s=0;s<t\.attributes\.length;s\+\+\)\$\[\(k=t\.attributes\[s\]\)\.name\]=k\.value;for\(s in/,
    "1)for(s in",
  ],
  [':l&&"function"!=typeof k||$[s]===k||', ":$[s]===k||"],
  [/h\?\(l\|\|y&&.*?r\.__k=\[\]\):\(y&&\(t\.textContent=""\),/, "("],
  [',"dangerouslySetInnerHTML"==s?y=k:"children"==s', ',"children"==s'],
  [':"dangerouslySetInnerHTML"==s?h=k:', ":"],
  ['e,o?o[0]:u.__k&&S(u,0),l,c),o&&o.some(g)),l&&"textarea"!=C||(s="value"', 'e,u.__k&&S(u,0),l,c)),(s="value"'],
  ["!u&&(i=t.__c)&&(i=i.__z)&&(f=B(i,o=[]))&&(i==t.__e&&o.some(g),g(f),g(i)),", ""],
  // Portals.
  [
    "M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n){n&&J(n,n)}),u.__k=null),l=u.__k?S(u,0):null),",
    "",
  ],
  [",M.__P&&(r.__e=null,l=s)", ""],
  // Classes and contexts.
  ["C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,", "L=i,"],
  [
    "(C?r.__c=d=new V(M,L):(r.__c=d=new x(M,L),d.constructor=V,d.render=K),j&&j.sub(d),d.state||(d.state={}),",
    "(r.__c=d=new x(M,L),d.constructor=V,d.render=K,d.state={},",
  ],
  [
    "C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_({},d.__s)),_(d.__s,V.getDerivedStateFromProps(M,d.__s)))),",
    "",
  ],
  ["M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),", ""],
  [
    "d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(k,b,m)})}else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount);",
    "}",
  ],
  ["q=C?25:0;", "q=0;"],
  ["C&&(y.push.apply(d.__h,d.__k),d.__k=[]),", ""],
  [
    "d.getChildContext&&(i=_({},i,d.getChildContext())),C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),",
    "",
  ],
  [/n=\{__e:function\(n,t,r,u\)\{for\(.*?throw f=0,n\}\}/, "n={}"],
  // The hooks hold the state.
  [/x\.prototype\.setState=function\(n,t\)\{.*?\},x\.prototype\.forceUpdate/, "x.prototype.forceUpdate"],
  ["if(i.componentWillUnmount)try{i.componentWillUnmount()}catch(t){n.__e(t,r)}", ""],
  // Formulas, HTML within pictures, comments in the page, and old names of attributes.
  [':"math"==C?f="http://www.w3.org/1998/Math/MathML"', ""],
  ['("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v.test(C))&&(f="http://www.w3.org/1999/xhtml"),', ""],
  [',t=o;(t=t&&t.nextSibling)&&8==t.nodeType&&!t.data.startsWith("$s"););return t', ";return o&&o.nextSibling"],
  ["for(t&&!t.parentNode", "t&&!t.parentNode"],
  [",o=n.__e,e=t;e&&8==e.nodeType;)e=e.nextSibling;for(o!=e&&", ",o=n.__e,e=t;o!=e&&"],
  [
    'if("http://www.w3.org/2000/svg"==i)t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if(',
    'if("http://www.w3.org/2000/svg"!=i&&',
  ],
  // What other hooks, tools and tests of Preact would use; an error of a component is one of the page.
  ["&&i==n.debounceRendering||((i=n.debounceRendering)||queueMicrotask)(H)", "||queueMicrotask(H)"],
  ["(i||queueMicrotask)(H)", "queueMicrotask(H)"],
  ["return!o&&n.vnode&&n.vnode(e),e", "return e"],
  ["n.vnode&&n.vnode(r),", ""],
  ["u(n.event?n.event(r):r)", "u(r)"],
  ["n.__c&&n.__c(r,t),", ""],
  ["n.__&&n.__(t,r),", ""],
  [
    "try{t=r.__h,r.__h=[],t.some(function(n){n.call(r)})}catch(t){n.__e(t,r.__v)}",
    "t=r.__h,r.__h=[],t.some(function(n){n.call(r)})",
  ],
  ['try{"function"==typeof t?r?', '"function"==typeof t?r?'],
  ["t(null)):t.current=r}catch(t){n.__e(t,u)}", "t(null)):t.current=r"],
  ["{v=e.length;try{if(M=r.props,", "{if(M=r.props,"],
  [/\}catch\(t\)\{if\(e\.length=v,.*?n\.__e\(t,r,u\)\}\}else l=/, "}else l="],
  [/function D\(n\)\{.*?\}function E/, "function E"],
];

/** Preact's own text without them. */
export function lean(text) {
  return CUTS.reduce((left, [cut, instead]) => {
    const parts = left.split(cut);
    if (parts.length !== 2) throw new Error(`Preact: ${parts.length - 1} places of ${cut}`);
    return parts.join(instead);
  }, text);
}
