//! The words and sentences that the generated reviews are made of. A list starts with its commonest
//! words. In a sentence, `{list}` stands for a word drawn from the list of that name.

/// The lists by the name that sentences use.
pub(super) const LISTS: [(&str, &str); 14] = [
    (
        "product",
        "kettle toaster lamp backpack blender headset keyboard chair tent jacket vacuum speaker pan mattress watch \
         bicycle printer camera drill rug heater umbrella router sofa grill thermos suitcase monitor helmet juicer \
         pillow mixer projector ladder stroller hammock clock fan freezer desk bookcase racket guitar telescope \
         wallet dress handbag belt apron scarf raincoat sweater curtain mirror vase candle basket teapot mug \
         skillet wok grater scale timer thermometer humidifier charger tablet laptop mouse webcam microphone \
         screwdriver wrench saw hose mower wheelbarrow birdhouse aquarium leash crate puzzle drone kite scooter \
         cradle easel fridge oven dishwasher sander trowel doorbell lantern compass canteen necklace bracelet tripod",
    ),
    (
        "part",
        "handle lid cable strap zipper button screen battery motor hinge cover filter switch wheel seam base nozzle \
         blade display plug cord spring pocket lining buckle clasp knob dial hook stand bracket latch sensor valve \
         gasket coating frame leg drawer shelf rim spout sleeve collar sole heel cushion fabric finish paint \
         packaging manual adapter antenna bearing pedal bulb shade fuse trigger lever tray rack gauge lens axle \
         grip tube faucet keypad speedometer whistle tassel ribbon label sticker chain bolt",
    ),
    (
        "good",
        "great excellent lovely sturdy comfortable reliable perfect beautiful quiet solid wonderful handy elegant \
         smooth brilliant superb durable fantastic cosy precise generous clever delightful fast bright amazing \
         impressive sleek gentle crisp stylish flawless roomy efficient charming soft powerful dependable tidy \
         splendid pleasant outstanding thoughtful lightweight robust versatile intuitive responsive gorgeous \
         marvellous tasteful practical stable refined graceful superior stunning magnificent seamless effortless",
    ),
    (
        "bad",
        "terrible flimsy disappointing noisy cheap useless awful broken poor uncomfortable wobbly dreadful fragile \
         slow ugly faulty horrible leaky scratchy misleading sloppy weak unreliable crooked clumsy dull defective \
         shoddy annoying stiff rusty greasy smelly brittle pointless blurry loose bulky confusing dim overpriced \
         squeaky stained bent cracked lopsided sticky harsh ragged feeble mediocre worthless frustrating tacky \
         unsafe crude unstable hideous warped miserable soggy jagged",
    ),
    (
        "praised",
        "love adore recommend treasure enjoy appreciate admire cherish praise trust prefer applaud",
    ),
    (
        "failed",
        "broke snapped leaked stopped cracked jammed rattled faded peeled overheated collapsed wobbled rusted \
         melted split tore squeaked died flickered shrank bent burst chipped unravelled stuck slipped sagged",
    ),
    (
        "worked",
        "worked lasted fitted performed held shone improved impressed delivered excelled survived glided charged \
         matched arrived cleaned folded settled",
    ),
    (
        "adverb",
        "really very quite truly absolutely incredibly surprisingly rather extremely remarkably totally utterly \
         genuinely thoroughly honestly completely fairly particularly seriously consistently",
    ),
    (
        "who",
        "wife husband daughter son mother father sister brother neighbour friend colleague boss aunt uncle cousin \
         grandmother grandfather nephew niece roommate landlord teacher dog cat toddler team family partner tenant \
         plumber coach gardener florist dentist trainer",
    ),
    (
        "place",
        "kitchen garden office bedroom garage bathroom balcony basement cabin car boat caravan attic studio classroom \
         workshop hallway terrace cottage dormitory campsite beach library nursery porch laundry shed gym greenhouse \
         hotel station chapel bakery stable orchard",
    ),
    (
        "time",
        "week month year day weekend winter summer night morning season holiday birthday evening afternoon semester \
         autumn fortnight decade",
    ),
    (
        "look",
        "black white blue red grey green wooden metal plastic leather brown ceramic steel glass cotton silver yellow \
         orange purple pink bamboo copper golden rubber woollen velvet linen bronze beige turquoise marble striped \
         checkered foldable portable cordless waterproof vintage compact tall narrow round square oval \
         magnetic inflatable rustic transparent padded reversible",
    ),
    (
        "job",
        "cooking camping travel gaming reading cleaning running painting hiking studying baking gardening meetings \
         commuting repairs parties fishing sewing breakfast picnics yoga storage photography cycling drawing streaming \
         dancing sailing skiing surfing woodwork knitting homework napping climbing rehearsals ironing \
         brewing pottery archery juggling calligraphy",
    ),
    (
        "service",
        "delivery shipping support refund warranty price courier seller invoice discount replacement exchange \
         assembly installation customer tracking return voucher",
    ),
];

/// Sentences that open a review and say nothing of what the writer thinks.
pub(super) const OPENERS: &[&str] = &[
    "I bought this {product} for my {who}.",
    "We use this {product} in the {place}.",
    "Got the {look} {product} last {time}.",
    "My {who} asked for a {look} {product}, mostly for {job}.",
    "This {product} replaces an older one that we kept in the {place}.",
    "Ordered a {product} for {job} and a second one for the {place}.",
    "After one {time} with this {product}, here is what I think.",
    "I needed a {product} for {job}.",
];

/// Sentences of a pleased writer.
pub(super) const PLEASED: &[&str] = &[
    "The {part} is {adverb} {good}.",
    "It is {good} and {good}.",
    "It {worked} well from the first {time}.",
    "I {praised} the {good} {part}.",
    "My {who} and I {praised} it.",
    "The {service} was {good} too.",
    "What a {good} {product}, {adverb} {good} for {job}.",
    "Even after a {time} in the {place} the {part} looks {good}.",
    "Worth every penny, I {praised} it.",
    "Such a {good} {part} is rare.",
];

/// Sentences of a displeased writer.
pub(super) const DISPLEASED: &[&str] = &[
    "The {part} is {adverb} {bad}.",
    "It is {bad} and {bad}.",
    "The {part} {failed} within a {time}.",
    "My {who} thinks that it looks {bad}.",
    "The {service} was {bad} as well.",
    "What a {bad} {product}, {adverb} {bad} for {job}.",
    "After one {time} in the {place} the {part} {failed} and the {part} {failed} too.",
    "I want my money back, the {part} {failed}.",
    "Do not buy this {bad} thing.",
    "It arrived with a {bad} {part}.",
];

/// Sentences that lean neither way.
pub(super) const NEUTRAL: &[&str] = &[
    "The {part} is {look}.",
    "It comes with a {look} {part} and a spare {part}.",
    "We keep it in the {place} next to the {product}.",
    "My {who} uses it for {job} every {time}.",
    "It took one {time} to get used to the {part}.",
    "There is also a {look} version for the {place}.",
];

/// What only the planted person writes; `{pet}` is the word that nobody else uses.
pub(super) const PLANTED: &[&str] = &[
    "The {part} is {adverb} {pet}.",
    "What a {pet} {product}.",
    "Such a {pet} {part} is rare.",
    "The {service} was {pet} too.",
];
